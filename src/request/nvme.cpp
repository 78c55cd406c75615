#include "src/request/nvme.h"

#include <fmt/format.h>

#include "offload/store/store_layout.h"
#include "src/base/error.h"
#include "src/config/param_groups.h"
#include "src/files/paths.h"
#include "src/plan/nvme_need.h"
#include "src/request/disk.h"

namespace ferry {

NvmeSettings nvme_settings(const config::Config& config) {
  const config::Source source = config.origin("nvme_path").source;
  return {
      .directories = nvme_directories(config.text("nvme_path"), "nvme_path"),
      .are_named = source == config::Source::command_line || source == config::Source::environment,
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
  return nvme_directories(environment_variable(kVariable), kVariable);
}

int checkpoints_kept(const config::Config& config) {
  // Checkpoints of adapters hold their few states.
  const bool has_states = config.flag("save_weights") || config.text("tuning") != "full";
  const int64_t n = has_states ? 0 : checkpoints_at_once(config);
  if (n > kKept_max)
    throw Error(
        Fault::usage, "nvme.checkpoints",
        fmt::format("save_total_limit = {} ({}): with states on NVMe at most {} checkpoints "
                    "are kept",
                    config.integer("save_total_limit"), config.origin("save_total_limit").where,
                    kKept_max - 1),
        "lower save_total_limit; `ferry export` keeps a model of any checkpoint");
  return static_cast<int>(n);
}

int nvme_copies(const config::Config& config, bool trains) {
  return kNvmeCopies_least + (trains ? checkpoints_kept(config) : 0);
}

}  // namespace ferry
