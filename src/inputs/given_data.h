#pragma once
// The data files that settings name, before anything is read of them.

#include <string_view>

#include "src/config/config.h"

namespace ferry {

/** Throws Error(data) when an option names a data file or folder that is not there; an empty path
 * passes. */
void check_data_exists(const config::Config& config, std::string_view key);

}  // namespace ferry
