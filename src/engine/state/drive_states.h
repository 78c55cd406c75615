#pragma once
// The states that a session keeps on a drive: the store, and who knows which block is where.
// Nothing where the step's shape has none there.

#include <functional>
#include <optional>
#include <span>
#include <string>

#include "offload/executor/run_memory.h"
#include "offload/nvme/disk.h"
#include "offload/store/state_store.h"

namespace ferry {

/** The store of a session's states on a drive. */
struct DriveOptions {
  /** Opens the disk that the store lies on, of n_bytes at least; the slots of the window are what
   * it reads and writes most. Called once, where the shape has states on a drive; the disk outlives
   * the session. */
  std::function<Disk&(int64_t n_bytes, std::span<std::byte> window)> open;
  int n_kept = 0;    ///< checkpoints that the store has room for, where it is made
  std::string run;   ///< the run's id
  std::string uuid;  ///< of the store that is there; empty: one is made
};

class DriveStates {
 public:
  /** Opens or makes the store where the shape has states on a drive. Nothing is in it, until
   * ExtentStore::start_from(). Shape and memory outlive it.
   * Throws as `open`, ExtentStore::create() and ExtentStore(). */
  DriveStates(const StepShape& shape, const RunMemory& memory, const DriveOptions& options);

  /** Null where no states live on a drive. */
  StateStore* store() { return states_ ? &*states_ : nullptr; }

 private:
  std::optional<ExtentStore> extents_;
  std::optional<StateStore> states_;
};

/** Bytes of the store of the shape's states, with room for so many checkpoints; 0: it has none. */
int64_t drive_store_bytes(const StepShape& shape, int n_kept);

}  // namespace ferry
