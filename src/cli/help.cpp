// ferry help [VERB | --markdown], ferry --help, and the list of verbs.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/cli/commands.h"
#include "src/config/command_line/verb.h"
#include "src/term/terminal.h"

namespace ferry::cli {

std::span<const Command> commands() {
  static constexpr std::array<Command, 17> kCommands = {{
      {"train", "fine-tune a model on texts, or train one from scratch", run_train},
      {"eval", "measure a trained model on labelled data", run_eval},
      {"predict", "label texts with a trained model", run_predict},
      {"generate", "go on with texts, by a trained language model", run_generate},
      {"chat", "talk with a chat model", run_chat},
      {"serve", "answer programs of this machine, as OpenAI's API does", run_serve},
      {"export", "write a trained model as a Hugging Face directory or a GGUF file", run_export},
      {"plan", "say beforehand what a run needs and whether it fits", run_plan},
      {"preview", "show the texts of a training as the model will see them", run_preview},
      {"fetch", "bring a model of the Hugging Face hub to this machine", run_fetch},
      {"runs", "look at runs, and pause, resume, save, sample or stop them", run_runs},
      {"presets", "list, show and copy settings that belong together", run_presets},
      {"doctor", "what this machine has and can do, and what is wrong with it", run_doctor},
      {"bench", "measure one part of this machine, as a run uses it", run_bench},
      {"gui", "the desktop app: pick, plan, watch and steer runs", run_gui},
      {"completion", "a script that completes command lines in bash, zsh or fish", run_completion},
      {"help", "this text, or the options of a verb: ferry help train", run_help},
  }};
  return kCommands;
}

const Command& find_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Command& command : commands()) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  std::string nearest = nearest_name(name, names);
  throw Error(
      Fault::usage, "cli.verb", fmt::format("unknown verb '{}'", name),
      nearest.empty() ? "ferry --help lists them" : fmt::format("did you mean '{}'?", nearest));
}

namespace {

using nlohmann::ordered_json;

constexpr std::pair<int, std::string_view> kExitCodes[] = {{0, "done"},
                                                           {2, "usage or configuration"},
                                                           {3, "does not fit"},
                                                           {4, "data or model file"},
                                                           {5, "hardware or driver"},
                                                           {6, "diverged"},
                                                           {130, "stopped as asked"}};

ordered_json json_of_option(const config::Option& option) {
  ordered_json aliases = ordered_json::array();
  for (const config::Alias& alias : option.aliases)
    aliases.push_back(alias.name);
  std::string flag = "--" + std::string(option.key);
  std::ranges::replace(flag, '_', '-');
  ordered_json special = ordered_json::object();
  if (!option.special.value.empty())
    special[std::string(option.special.value)] = option.special.word;
  return {{"key", option.key},         {"flag", flag},
          {"aliases", aliases},        {"group", option.group},
          {"default", option.value},   {"can_be_auto", option.can_be_auto},
          {"choices", option.choices}, {"unit", option.unit},
          {"special", special},        {"on_resume", name_of(option.effect)},
          {"help", option.help}};
}

/** All verbs, or one with the options that it acts on. */
int print_help_json(std::string_view verb_name) {
  ordered_json out = {{"version", FERRY_VERSION}};
  if (const config::Verb* verb = config::find_verb(verb_name)) {
    out["verb"] = verb->name;
    out["summary"] = verb->summary;
    out["usage"] = fmt::format("ferry {} {}", verb->name, verb->usage);
    out["required"] = verb->required;
    out["examples"] = verb->examples;
    out["options"] = ordered_json::array();
    for (const config::Option& option : config::option_table())
      if ((option.verbs & verb->mask) != 0) out["options"].push_back(json_of_option(option));
  } else {
    if (!verb_name.empty()) find_command(verb_name);
    for (const Command& command : commands())
      if (verb_name.empty() || verb_name == command.name)
        out["verbs"].push_back({{"name", command.name}, {"summary", command.summary}});
    for (const auto& [code, meaning] : kExitCodes)
      out["exit_codes"][std::to_string(code)] = meaning;
  }
  fmt::print("{}\n", out.dump(2));
  return 0;
}

}  // namespace

int run_help(Arguments arguments) {
  if (std::ranges::find(arguments, "--json") != arguments.end()) {
    std::string verb;
    for (const std::string& argument : arguments)
      if (!argument.starts_with('-')) verb = argument;
    return print_help_json(verb);
  }
  if (arguments.size() == 1 && arguments[0] == "--markdown") {  // for scripts/renew_options
    fmt::print("{}", config::options_markdown());
    return 0;
  }
  if (!arguments.empty() && !arguments[0].starts_with('-')) {
    const Command& command = find_command(arguments[0]);
    const std::string flag = "--help";
    if (command.run != run_help) return command.run({&flag, 1});
  }
  fmt::print(
      "ferry {} - fine-tunes transformers, also those that do not fit the GPU\n\nusage: ferry VERB "
      "[options]\n\n",
      FERRY_VERSION);
  for (const Command& command : commands())
    fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print(
      "\nStart with   ferry train --preset minilm-classify --dataset FOLDER   (one sub-folder of "
      "texts per label),\n"
      "or           ferry doctor\n\n"
      "Exit codes: 0 done, 2 usage or configuration, 3 does not fit, 4 data or model file,\n"
      "5 hardware or driver, 6 diverged, 130 stopped as asked.\n");
  return 0;
}

}  // namespace ferry::cli
