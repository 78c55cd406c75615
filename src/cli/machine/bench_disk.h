#pragma once
// ferry bench disk: the one part that this program measures by itself.

#include <string_view>

#include "src/cli/commands.h"

namespace ferry::cli {

extern const std::string_view kBenchDiskHelp;

/** The words after `bench disk`. */
int run_bench_disk(Arguments arguments);

}  // namespace ferry::cli
