#include "src/plan/nvme.h"

namespace ferry {

NvmeSettings nvme_settings(const config::Config& config) {
  NvmeSettings settings{.memory_bytes = config.maybe_integer("nvme_memory"),
                        .endurance_bytes = config.maybe_integer("nvme_endurance")};
  for (const std::string& directory : config.list("nvme_path"))
    settings.directories.emplace_back(directory);
  return settings;
}

}  // namespace ferry
