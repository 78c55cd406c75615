#pragma once
// The parts of the option table, in its order. A new option is one entry in one of them;
// tests/config then demands that it can be set in TOML, by flag and by environment. Private to
// src/config.

#include <string_view>
#include <vector>

#include "src/config/options/option.h"

namespace ferry::config {

inline constexpr double kMaxInteger = 9007199254740991.0;  // 2^53 - 1: exact as a double, too

/** Model, data, output. */
std::vector<Option> data_options();
/** Prompts. */
std::vector<Option> prompt_options();
/** Adapters. */
std::vector<Option> adapter_options();
/** Batch and schedule, optimizer, regularisation. */
std::vector<Option> training_options();
/** How `ferry generate` goes on with a prompt. */
std::vector<Option> generation_options();
/** Precision and repeatability, memory and placement, threads, evaluation and logging. */
std::vector<Option> machine_options();
/** Hosts and restarts. */
std::vector<Option> host_options();

}  // namespace ferry::config
