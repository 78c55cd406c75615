#pragma once
// The states of a committed or pinned generation, by block, segment and byte, as if each segment
// lay in one row: for a run that goes on elsewhere, and for export. Needs no run's memory.

#include <cstddef>
#include <span>
#include <vector>

#include "offload/store/state_store.h"

namespace ferry {

class GenerationReader {
 public:
  /** `shape`: as the generation was written; `states` is its store. All outlive this. */
  GenerationReader(const StepShape& shape, const StateStore& states, const Generation& from);

  /** Bytes of a state, as its segment has them; or fp32 bytes of the master, whole values,
   * however the run kept it. Throws as ExtentStore::wait(). */
  void read(int block, Segment segment, int64_t offset, std::span<std::byte> to);

 private:
  void read_stored(int block, Segment segment, int64_t offset, std::span<std::byte> to);

  const StepShape& shape_;
  const StateStore& states_;
  const Generation& from_;
  std::vector<StorePage> slot_;
  int block_ = -1, piece_ = -1;  // in the slot
};

}  // namespace ferry
