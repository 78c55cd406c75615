#pragma once
// The third place as settings ask for it: drives, and what a run may take of them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "src/config/config.h"

namespace ferry {

using Directories = std::vector<std::filesystem::path>;

struct NvmeSettings {
  Directories directories;  ///< one for each drive; empty: no third place
  /** By the user, for this command: a run's own settings may be somebody else's. */
  bool are_named = false;
  /** The most that the run's files may take, all of them together; nullopt: what is free. */
  std::optional<int64_t> memory_bytes;
  /** Bytes that the drives may be written in their life, all of them together; nullopt: not known.
   */
  std::optional<int64_t> endurance_bytes;
};

NvmeSettings nvme_settings(const config::Config& config);

/** The checkpoints that a run keeps on its drives at once, the one that is being made among them:
 * none with save_strategy = no or save_weights. Throws Error(usage) for more than a store has room
 * for. */
int checkpoints_kept(const config::Config& config);
/** The copies of its states that a run has room for (PlanRequest::n_nvme_copies). */
int nvme_copies(const config::Config& config, bool trains);

/** The directories of a value of nvme_path. Error(usage) where one is empty; `where` says who gave
 * it.
 */
Directories nvme_directories(std::string_view text, std::string_view where);
/** Those of FERRY_NVME_PATH, for commands that take no settings. */
Directories nvme_directories_of_environment();

}  // namespace ferry
