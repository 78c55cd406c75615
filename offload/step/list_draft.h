#pragma once
// A list of actions while it is made. Private to the pager.

#include <algorithm>
#include <array>
#include <vector>

#include "offload/step/action.h"
#include "offload/step/layout.h"
#include "offload/step/touches.h"

namespace ferry {

/** Appends the bytes, if there are any. */
inline void put(
    std::vector<Bytes>& to, RegionId region, int64_t offset, int64_t n_bytes, Role role) {
  if (region >= 0 && n_bytes > 0) to.push_back({region, offset, n_bytes, role});
}

class ListDraft {
 public:
  /** `layout` outlives this. */
  explicit ListDraft(const Layout& layout) : layout_(layout), touches_(layout.regions.size()) {}

  /** Appends the action and makes it wait for what it must; returns its index. */
  int add(Action action);
  /** Appends a copy, whose source and target have the same number of bytes; in `releases` nobody
   * reads anything after it. */
  int add_move(Action move, Bytes from, Bytes to, RegionId releases = -1);
  /** Nobody reads what the region holds after the action. */
  void release(Action& action, RegionId region) const {
    if (region >= 0) put(action.writes, region, 0, layout_.region(region).n_bytes, Role::dead);
  }
  /** The same of the last action that has used the start of the region. */
  void release_after_last_use(RegionId region) {
    const int index = touches_.last_use(region);
    Action& last = list_[static_cast<size_t>(index)];
    // A rank without a micro-batch in a round fetches and gathers for the others, and no pass
    // follows. Other bytes of the region may be on their way.
    if (last.verb == Verb::fetch_weights || last.verb == Verb::gather_weights) return;
    const auto is_release = [&](const Bytes& bytes) {
      return bytes.region == region && bytes.role == Role::dead;
    };
    if (std::ranges::any_of(last.writes, is_release)) return;
    release(last, region);
    touches_.add_write(index, last.writes.back());
  }
  /** False as long as no action has read or written the start of the region. */
  bool is_used(RegionId region) const { return touches_.last_use(region) >= 0; }
  /** The last action of each queue but those that end_later(); -1: none. */
  const std::array<int, kQueues>& last() const { return last_; }
  StepList take() { return std::move(list_); }

 private:
  const Layout& layout_;
  Touches touches_;
  StepList list_;
  std::array<int, kQueues> last_ = no_actions();
};

}  // namespace ferry
