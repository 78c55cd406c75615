#include "src/config/launch.h"

namespace ferry::config {

bool is_of_launch(const Option& option) {
  return option.group == "Hosts and restarts";
}

void forget_launch(Config& config) {
  for (const Option& option : option_table())
    if (is_of_launch(option)) config.forget(option.key);
}

}  // namespace ferry::config
