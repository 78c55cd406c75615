#pragma once
// The third place as settings ask for it: drives, and what a run may take of them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "src/config/config.h"

namespace ferry {

struct NvmeSettings {
  std::vector<std::filesystem::path> directories;  ///< one for each drive; empty: no third place
  /** The most that the run's files may take, all of them together; nullopt: what is free. */
  std::optional<int64_t> memory_bytes;
  /** Bytes that the drives may be written in their life, all of them together; nullopt: not known.
   */
  std::optional<int64_t> endurance_bytes;
};

NvmeSettings nvme_settings(const config::Config& config);

}  // namespace ferry
