#pragma once
// The directories of nvme_path before a run writes to them: whether they will do, and how much a
// store may take there. Nothing is written.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "src/files/write/file_lock.h"
#include "src/request/nvme.h"

namespace ferry::runs {

/** Throws Error(usage) where a directory is missing, named twice, on a network, or on a file system
 * without direct transfers; Error(machine) where nothing may be written there. */
void check_store_directories(const Directories& directories);

using DirectoryLocks = std::vector<std::unique_ptr<FileLock>>;
/** Keeps other runs out of the directories as long as it lives: two would take each other's space,
 * and each would have half of what its plan counts on. Throws Error(machine) where a run is there.
 */
DirectoryLocks lock_store_directories(const Directories& directories);

/** The most that a store in these directories may take, all of them together: what nvme_memory
 * says, else what is free but a margin. `own_bytes` in each are of files that the store takes over.
 * Directories on one drive share what is free there. Throws Error(machine) where one cannot be
 * looked at. */
int64_t store_budget_bytes(const NvmeSettings& settings, int64_t own_bytes_each = 0);

/** The space that a run's states take on its drives. */
struct StoreNeed {
  int64_t state_bytes = 0;  ///< once
  int n_kept = 0;           ///< checkpoints
  int64_t n_bytes = 0;      ///< of the disk: states x (2 + n_kept), gradients, and maps
  int64_t grad_bytes = 0;
};

/** Throws Error(does_not_fit) with what to change where the drives, or nvme_memory, have too
 * little.
 */
void check_store_room(const NvmeSettings& settings, const StoreNeed& need);

}  // namespace ferry::runs
