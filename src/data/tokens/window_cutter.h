#pragma once
// Cuts the tokens of a document, which may come part by part, to windows of one length.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ferry {

class WindowCutter {
 public:
  explicit WindowCutter(size_t length) : length_(length) {}

  /** Gives `take` each window that is full now, as std::vector<int32_t>. */
  template <typename Take>
  void add(std::span<const int32_t> ids, const Take& take) {
    for (;;) {
      const size_t n = std::min(ids.size(), length_ - rest_.size());
      rest_.insert(rest_.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n));
      ids = ids.subspan(n);
      if (rest_.size() < length_) return;
      give(take);
    }
  }

  /** The document ends: gives what is left, unless it is the only token of a further window, which
   * nothing follows. */
  template <typename Take>
  void finish(const Take& take) {
    if (rest_.size() > 1 || (is_first_ && !rest_.empty())) give(take);
    rest_.clear();
    is_first_ = true;
  }

 private:
  template <typename Take>
  void give(const Take& take) {
    take(rest_);
    rest_.clear();
    is_first_ = false;
  }

  size_t length_;
  std::vector<int32_t> rest_;
  bool is_first_ = true;  // no window of the document was given
};

}  // namespace ferry
