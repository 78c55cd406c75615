#include "offload/step/touches.h"

#include <algorithm>

namespace ferry {

template <class Each>
void Touches::for_ranges(const Bytes& bytes, Each&& each) {
  std::vector<Range>& ranges = regions_[static_cast<size_t>(bytes.region)];
  int64_t at = bytes.offset;
  const int64_t end = bytes.offset + bytes.n_bytes;
  auto i =
      static_cast<size_t>(std::ranges::upper_bound(ranges, at, {}, &Range::end) - ranges.begin());
  const auto split = [&](int64_t where) {  // range i, in two
    ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(i), ranges[i]);
    ranges[i].end = ranges[i + 1].begin = where;
  };
  const auto insert = [&](int64_t begin, int64_t until) {  // before range i
    ranges.insert(ranges.begin() + static_cast<std::ptrdiff_t>(i), Range{begin, until});
  };
  for (; at < end; ++i) {
    if (i == ranges.size() || ranges[i].begin >= end) {
      insert(at, end);
    } else if (ranges[i].begin > at) {
      insert(at, ranges[i].begin);
    } else if (ranges[i].begin < at) {
      split(at);
      ++i;
    }
    if (ranges[i].end > end) split(end);
    each(ranges[i]);
    at = ranges[i].end;
  }
}

void Touches::order(Action& action) {
  const auto index = static_cast<int>(actions_.size());
  const auto queue = static_cast<size_t>(action.queue);
  std::array<int, kQueues> before;  // by queue: the last action that this waits for
  before.fill(-1);
  const auto wait_for = [&](int other) {
    if (other < 0) return;
    int& last = before[static_cast<size_t>(actions_[static_cast<size_t>(other)].queue)];
    last = std::max(last, other);
  };
  for (int other : action.after)
    wait_for(other);
  for (const Bytes& bytes : action.reads)
    for_ranges(bytes, [&](Range& range) {
      wait_for(range.writer);
      range.readers[queue] = index;
    });
  const auto write = [&](Range& range) {
    wait_for(range.writer);
    for (size_t q = 0; q < kQueues; ++q)
      before[q] = std::max(before[q], range.readers[q]);
    range.writer = index;
    range.readers.fill(-1);
  };
  actions_.push_back({action.queue, {}});
  for (const Bytes& bytes : action.writes)
    for_ranges(bytes, write);

  std::array<int, kQueues>& known = actions_.back().known;
  known.fill(-1);
  if (last_[queue] >= 0) known = actions_[static_cast<size_t>(last_[queue])].known;
  known[queue] = last_[queue] = index;
  action.after.clear();
  std::ranges::sort(before, std::greater{});  // the latest imply most
  for (int other : before) {
    if (other < 0) break;
    const Past& past = actions_[static_cast<size_t>(other)];
    if (other <= known[static_cast<size_t>(past.queue)]) continue;
    action.after.push_back(other);
    for (size_t q = 0; q < kQueues; ++q)
      known[q] = std::max(known[q], past.known[q]);
  }
  std::ranges::reverse(action.after);
}

void Touches::add_write(int action, const Bytes& bytes) {
  // Others may still read: they are waited for as before.
  for_ranges(bytes, [&](Range& range) { range.writer = std::max(range.writer, action); });
}

int Touches::last_use(RegionId region) const {
  const std::vector<Range>& ranges = regions_[static_cast<size_t>(region)];
  if (ranges.empty()) return -1;
  return std::max(ranges.front().writer, *std::ranges::max_element(ranges.front().readers));
}

}  // namespace ferry
