#include "offload/step/list_draft.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {

int ListDraft::add(Action action) {
  touches_.order(action);
  list_.push_back(std::move(action));
  const int index = static_cast<int>(list_.size()) - 1;
  if (!ends_later(list_.back().verb)) last_[static_cast<size_t>(list_.back().queue)] = index;
  return index;
}

int ListDraft::add_move(Action move, Bytes from, Bytes to, RegionId releases) {
  FERRY_CHECK(from.region >= 0 && to.region >= 0 && from.n_bytes == to.n_bytes,
              "{} of {} bytes to {} has no room", name_of(move.verb), from.n_bytes, to.n_bytes);
  move.reads.insert(move.reads.begin(), from);
  move.writes.insert(move.writes.begin(), to);
  release(move, releases);
  return add(std::move(move));
}

}  // namespace ferry
