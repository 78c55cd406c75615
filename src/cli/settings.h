#pragma once
// The first steps of every verb with settings, and how the verbs that train go on: as the second
// binary.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/cli/commands.h"
#include "src/config/command_line/command_line.h"

namespace ferry::cli {

/** Parses the verb's arguments, prints notes to stderr and checks what the verb cannot do without.
 * nullopt: help was asked for and printed. */
std::optional<config::CommandLine> read_settings(std::string_view verb, Arguments arguments);

/** A setting's value as `--json` prints it. */
nlohmann::ordered_json json_of(const config::Value& value);

/** Replaces this process by a program, the first word, with the others; returns only by
 * Error(machine). */
[[noreturn]] void become(std::vector<std::string> words, std::string_view where);

/** The path of ferry-trainer. Throws Error(machine) where there is none. */
std::string trainer_path();

/** Replaces this process by `ferry-trainer VERB arguments...`; returns only by Error(machine). */
[[noreturn]] void become_trainer(std::string_view verb, Arguments arguments);

}  // namespace ferry::cli
