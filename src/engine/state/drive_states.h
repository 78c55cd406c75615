#pragma once
// The states that a session keeps on a drive: its disk, its store, and who knows which block is
// where. Nothing where the step's shape has none there.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "offload/executor/run_memory.h"
#include "offload/nvme/open_disk.h"
#include "offload/store/state_store.h"

namespace ferry {

/** The store of a run's states on a drive. */
struct DriveOptions {
  /** One file, or one on each of several drives, in the order in which they share the bytes. */
  std::vector<std::filesystem::path> files;
  int n_kept = 0;    ///< checkpoints that it has room for, where it is made
  std::string run;   ///< the run's id
  std::string uuid;  ///< of the store that is there; empty: one is made
  DiskOptions disk;
};

class DriveStates {
 public:
  /** Opens or makes the store where the shape has states on a drive. Shape and memory outlive it.
   * Throws as open_disk(), ExtentStore::create() and ExtentStore(). */
  DriveStates(const StepShape& shape, const RunMemory& memory, const DriveOptions& options);

  /** Null where no states live on a drive. */
  StateStore* store() { return states_ ? &*states_ : nullptr; }
  const FileDisk* disk() const { return disk_.get(); }

 private:
  std::unique_ptr<FileDisk> disk_;
  std::optional<ExtentStore> extents_;
  std::optional<StateStore> states_;
};

/** Bytes of the store of the shape's states, with room for so many checkpoints; 0: it has none. */
int64_t drive_store_bytes(const StepShape& shape, int n_kept);

}  // namespace ferry
