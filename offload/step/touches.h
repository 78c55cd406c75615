#pragma once
// Says what an action of a list comes after: whoever wrote the bytes that it reads, and whoever
// read or wrote the bytes that it writes. Orders that others imply are left out.

#include <array>
#include <vector>

#include "offload/step/action.h"

namespace ferry {

class Touches {
 public:
  explicit Touches(size_t n_regions) : regions_(n_regions) {}

  /** Makes the action, which comes next in the list, wait for what it must, and for those in its
   * `after`. */
  void order(Action& action);
  /** Makes actions to come that use these bytes wait for an earlier one, too. */
  void add_write(int action, const Bytes& bytes);
  /** The last action that read or wrote the start of a region; -1: none has. */
  int last_use(RegionId region) const;

 private:
  struct Range {
    int64_t begin = 0, end = 0;
    int writer = -1;
    std::array<int, kQueues> readers = no_actions();  ///< since then, the last of each queue
  };
  /** Calls `each` with ranges that make up these bytes. */
  template <class Each>
  void for_ranges(const Bytes& bytes, Each&& each);

  std::vector<std::vector<Range>> regions_;  ///< each ascending, without overlaps
  struct Past {
    QueueId queue{};
    std::array<int, kQueues> known;  ///< the last action of each queue that has ended before
  };
  std::vector<Past> actions_;
  std::array<int, kQueues> last_ = no_actions();  ///< by queue
};

}  // namespace ferry
