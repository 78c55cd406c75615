#pragma once
// A machine profile as people read it: the lines of `ferry doctor`, the tables of `ferry bench`.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/plan/machine/machine_profile.h"
#include "src/term/terminal.h"

namespace ferry::cli {

/** Name and figures, what was not measured left out. */
std::vector<std::pair<std::string, std::string>> profile_summary(const MachineProfile& profile);

/** Every figure of a part ("adamw", "copy", ...; "all"); empty where nothing of it was measured. */
std::string profile_tables(std::string_view part,
                           const MachineProfile& profile,
                           const term::Terminal& terminal);

}  // namespace ferry::cli
