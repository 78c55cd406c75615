#pragma once
// The first steps of every verb with settings, and how the verbs that train go on: as the second
// binary.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "src/cli/commands.h"
#include "src/config/command_line/command_line.h"

namespace ferry::cli {

/** Parses the verb's arguments, prints notes to stderr and checks what the verb cannot do without.
 * nullopt: help was asked for and printed. */
std::optional<config::CommandLine> read_settings(std::string_view verb, Arguments arguments);

/** Throws Error(data) when an option names a data file or folder that is not there; an empty path
 * passes. */
void check_data_exists(const config::Config& config, std::string_view key);

/** A setting's value as `--json` prints it. */
nlohmann::ordered_json json_of(const config::Value& value);

/** Replaces this process by `ferry-trainer VERB arguments...`; returns only by Error(machine). */
[[noreturn]] void become_trainer(std::string_view verb, Arguments arguments);

}  // namespace ferry::cli
