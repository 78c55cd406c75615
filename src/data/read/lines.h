#pragma once
// The lines of a text, one after another. Private to src/data.

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace ferry {

class Lines {
 public:
  /** `text` outlives it. */
  explicit Lines(std::string_view text) : text_(text) {}

  /** The next line without its LF; false at the end. */
  bool next(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    return true;
  }
  /** The number of the last line, from 1. */
  int64_t number() const { return number_; }
  /** The share of the text that was given so far, from 0 to 1. */
  double share() const {
    return text_.empty() ? 1
                         : static_cast<double>(std::min(at_, text_.size())) /
                               static_cast<double>(text_.size());
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
  int64_t number_ = 0;
};

}  // namespace ferry
