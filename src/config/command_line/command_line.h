#pragma once
// A verb's command line: switches, options in every spelling, free words. Called by the ferry
// binary (so that a typing error shows within milliseconds) and again, with the same arguments, by
// the trainer.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/config/command_line/verb.h"
#include "src/config/config.h"

namespace ferry::config {

struct CommandLine {
  const Verb* verb = nullptr;
  Config config;                   // settled: presets, file, FERRY_* and flags are in it
  std::vector<std::string> words;  // predict: the texts
  bool wants_help = false;         // then nothing else was read
  bool wants_json = false;
  bool wants_dry_run = false;
  bool is_verbose = false;
  /** What the file of settings says about itself. The file of --config comes before the preset. A
   * run that goes on has no such words. */
  PresetHead head;
  std::string first_model;         // eval: the model that a run by preference began with
  std::vector<std::string> notes;  // one line each, for stderr; the ferry binary prints them
};

/** NAME=VALUE pairs as of a process environment; only FERRY_* matter. */
using Environment = std::vector<std::pair<std::string, std::string>>;
Environment process_environment();

/** The settings of `ferry VERB arguments...`. Takes --key value, --key=value, --no-key for
 * booleans, key=value, both of - and _. Throws Error(usage) on an unknown verb or option (nearest
 * name), a value that does not fit, a word too many, an option of another verb. Does not look at
 * the model or the data: see check_required. */
CommandLine parse_command_line(std::string_view verb,
                               std::span<const std::string> arguments,
                               const Environment& environment = process_environment());

/** Throws Error(usage) when a key that the verb, or another key, cannot do without is not set. */
void check_required(const CommandLine& command);

}  // namespace ferry::config
