#include "src/plan/nvme.h"

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/config/param_groups.h"
#include "src/config/paths.h"

namespace ferry {

NvmeSettings nvme_settings(const config::Config& config) {
  return {.directories = nvme_directories(config.text("nvme_path"), "nvme_path"),
          .memory_bytes = config.maybe_integer("nvme_memory"),
          .endurance_bytes = config.maybe_integer("nvme_endurance")};
}

Directories nvme_directories(std::string_view text, std::string_view where) {
  const auto items = config::parse_list(text);
  if (!items)
    throw Error(Fault::usage, "config.value",
                fmt::format("{} = {}, expected directories separated by commas", where, text),
                "one of them is empty: leave out a comma");
  return {items->begin(), items->end()};
}

Directories nvme_directories_of_environment() {
  constexpr const char* kVariable = "FERRY_NVME_PATH";
  return nvme_directories(config::environment_variable(kVariable), kVariable);
}

}  // namespace ferry
