#pragma once
// The options that go with a way of tuning: of the group "Adapters". Knows nobody but the table.

#include <string>
#include <string_view>
#include <vector>

#include "src/config/options/option.h"

namespace ferry::config {

/** True of all options but those of "Adapters" that another tuning reads. */
bool suits_tuning(const Option& option, std::string_view tuning);

/** The values of tuning that an option goes with, in the table's order. */
std::vector<std::string_view> tunings_of(const Option& option);

/** True of the options of "Adapters" but tuning itself. */
bool is_of_adapters(const Option& option);

}  // namespace ferry::config
