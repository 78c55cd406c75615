// The option table, put together of its parts. Reading order is the order of --help and of
// config.toml.

#include <algorithm>
#include <iterator>

#include "src/config/options/option_groups.h"

namespace ferry::config {

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = [] {
    std::vector<Option> all;
    for (const auto& part : {data_options, prompt_options, adapter_options, training_options,
                             generation_options, machine_options, host_options})
      std::ranges::move(part(), std::back_inserter(all));
    return all;
  }();
  return table;
}

}  // namespace ferry::config
