#pragma once
// `ferry bench nccl`: what the GPUs of this machine, or processes of its CPU, send each other.

#include <string_view>

#include "src/cli/commands.h"

namespace ferry::cli {

extern const std::string_view kBenchNcclHelp;

/** `arguments`: what comes behind `nccl`. Keeps what a plan goes by in the machine's profile. */
int run_bench_nccl(Arguments arguments);

}  // namespace ferry::cli
