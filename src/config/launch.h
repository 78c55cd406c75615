#pragma once
// Options that belong to one start of a run, not to the run: hosts and restarts. Each start names
// them anew.

#include "src/config/config.h"

namespace ferry::config {

/** True for such an option. */
bool is_of_launch(const Option& option);

/** Back to the built-in values, as a run's config.toml has them. */
void forget_launch(Config& config);

}  // namespace ferry::config
