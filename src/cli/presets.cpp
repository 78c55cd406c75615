// ferry presets ls | show NAME | cp NAME FILE.

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/host_memory.h"
#include "src/cli/commands.h"
#include "src/cli/preset_shown.h"
#include "src/config/config.h"
#include "src/config/preset.h"
#include "src/files/plain_file.h"
#include "src/plan/machine/machine_profile.h"
#include "src/service/machine/smaller_machine.h"
#include "src/service/presets.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

using nlohmann::ordered_json;
using service::PresetFacts;

constexpr std::string_view kPresetsHelp =
    "ferry presets - list, show and copy settings that belong together\n\n"
    "usage: ferry presets ls [--task TASK] [--card CARD] [--here] [--json | --names]\n"
    "       ferry presets show NAME [--json]\n"
    "       ferry presets cp NAME FILE\n\n"
    "ls lists them, with the card and the host memory that each was made for:\n"
    "  --task TASK   those of a task, as classification or causal-lm\n"
    "  --card CARD   those made for a card, as 2080ti-11g\n"
    "  --here        those made for no more than this machine has\n"
    "show prints a preset's settings, and what they take on its card (planned, not measured).\n\n"
    "Presets are TOML files that come with Ferry, or your own in $XDG_CONFIG_HOME/ferry/presets "
    "(~/.config);\n"
    "your own hides a built-in one of the same name. Use one with ferry train --preset NAME, or "
    "copy it, "
    "change it, and use the copy with --config FILE.\n";
constexpr std::string_view kUsage =
    "usage: ferry presets ls [--task TASK] [--card CARD] [--here] [--json | --names] | show NAME "
    "[--json] | cp NAME FILE";

/** A preset of the list: its facts, or why its file is none. */
struct Entry {
  config::Preset preset;
  std::optional<PresetFacts> facts;
  std::string problem;
};

/** The presets to list: those that have all of it. */
struct Filter {
  std::string task, card;
  bool is_here = false;  ///< made for no more than this machine has

  bool is_empty() const { return task.empty() && card.empty() && !is_here; }
};

/** As the option task takes it, and a machine's profile; Error(usage) for others. */
Filter checked(Filter filter) {
  config::Config config;
  if (!filter.task.empty()) {
    config.set("task", filter.task, {config::Source::command_line, "--task"});
    filter.task = config.text("task");
  }
  if (!filter.card.empty()) filter.card = find_machine_preset(filter.card).name;
  return filter;
}

bool passes(const PresetFacts& facts, const Filter& filter, const service::MachineHere& here) {
  return (filter.task.empty() || facts.task == filter.task) &&
         (filter.card.empty() || facts.head.card == filter.card) &&
         (!filter.is_here || service::lacks(here, facts.head).empty());
}

std::vector<Entry> entries(const Filter& given) {
  const Filter filter = checked(given);
  service::MachineHere here;
  if (filter.is_here) here = service::machine_here(service::read_nvidia(), read_host_memory());
  std::vector<Entry> found;
  for (const config::Preset& preset : config::list_presets()) {
    Entry entry{.preset = preset};
    try {
      entry.facts = service::read_preset(preset);
      if (!passes(*entry.facts, filter, here)) continue;
    } catch (const Error& error) {
      entry = {.preset = preset, .problem = error.what()};
    }
    found.push_back(std::move(entry));
  }
  return found;
}

void print_json(const ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

ordered_json json_of(const Entry& entry) {
  if (entry.facts) return facts_json(*entry.facts);
  return {{"name", entry.preset.name},
          {"file", entry.preset.file.string()},
          {"is_users", entry.preset.is_users},
          {"problem", entry.problem}};
}

void list(const Filter& filter, bool wants_json) {
  ordered_json all = ordered_json::array();
  term::Table table(
      {{"preset"}, {"model"}, {"task"}, {"card"}, {"host memory", term::Align::right}, {""}});
  for (const Entry& entry : entries(filter)) {
    all.push_back(json_of(entry));
    const std::string whose = entry.preset.is_users ? "yours" : "";
    if (!entry.facts) {
      table.add_row({entry.preset.name, entry.problem, "", "", "", whose});
      continue;
    }
    const config::PresetHead& head = entry.facts->head;
    table.add_row({entry.preset.name, entry.facts->model, entry.facts->task,
                   head.card.empty() ? "any" : head.card,
                   head.host_memory_bytes ? format_bytes(*head.host_memory_bytes) : "", whose});
  }
  if (wants_json)
    print_json(all);
  else
    fmt::print("{}", table.text(term::detect_terminal(1)));
}

/** One a line, for shells: the table gives way where a terminal is narrow. All of them without
 * reading a file. */
void list_names(const Filter& filter) {
  std::vector<config::Preset> presets;
  if (filter.is_empty())
    presets = config::list_presets();
  else
    for (const Entry& entry : entries(filter))
      presets.push_back(entry.preset);
  for (const config::Preset& preset : presets)
    if (preset.name.find('\n') == std::string::npos) ferry::print(fmt::format("{}\n", preset.name));
}

/** The tables of the manual page, for scripts/renew_presets. */
void print_markdown() {
  const std::vector<PresetFacts> presets = service::own_presets();
  fmt::print("{}", service::presets_markdown(presets, service::plan_presets(presets)));
}

void show(const std::string& name, bool wants_json) {
  const PresetFacts facts = service::read_preset(config::find_preset(name));
  if (wants_json) return print_json(shown_json(facts));
  log_line(fmt::format("# {}", facts.preset.file.string()));
  ferry::print(fmt::format("{}\n{}", read_text_file(facts.preset.file), shown_text(facts)));
}

void copy(const std::string& name, const std::filesystem::path& given) {
  const config::Preset preset = config::find_preset(name);
  service::read_preset(preset);  // one that is no preset says so
  const std::string text = read_text_file(preset.file);
  std::error_code error;
  const std::filesystem::path to =
      std::filesystem::is_directory(given, error) ? given / (preset.name + ".toml") : given;
  auto refuse = [&](Fault fault, std::string_view why, std::string_view hint) {
    throw Error(fault, "cli.presets", fmt::format("cannot write '{}': {}", to.string(), why), hint);
  };
  // "x": only a file that is not there yet, also where two are copied at once.
  std::FILE* file = std::fopen(to.c_str(), "wbx");
  if (!file && errno == EEXIST)
    refuse(Fault::usage, "it is there already", "give a new name; nothing is overwritten");
  if (!file) refuse(Fault::machine, std::strerror(errno), "is the directory there?");
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !is_written)
    refuse(Fault::machine, std::strerror(errno), "is the disk full?");
  log_line(fmt::format("{}: use it with ferry train --config {}", preset.name, to.string()));
}

struct Request {
  std::vector<std::string> words;
  Filter filter;
  std::string form;  ///< "--json", "--names", "--markdown"; empty: for people
  bool wants_help = false;
};

[[noreturn]] void refuse(Arguments arguments) {
  throw Error(Fault::usage, "cli.presets",
              fmt::format("'ferry presets {}'", fmt::join(arguments, " ")), kUsage);
}

Request parse(Arguments arguments) {
  Request request;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h")
      request.wants_help = true;
    else if (argument == "--here")
      request.filter.is_here = true;
    else if ((argument == "--task" || argument == "--card") && i + 1 < arguments.size())
      (argument == "--task" ? request.filter.task : request.filter.card) = arguments[++i];
    else if (!argument.starts_with("--"))
      request.words.push_back(argument);
    else if (request.form.empty())
      request.form = argument;
    else
      refuse(arguments);
  }
  return request;
}

}  // namespace

int run_presets(Arguments arguments) {
  const auto [words, filter, form, wants_help] = parse(arguments);
  const std::string verb = words.empty() ? "" : words[0];
  const bool is_plain = form.empty(), wants_json = form == "--json";
  const bool is_list = verb == "ls" && words.size() == 1;
  if (wants_help)
    fmt::print("{}", kPresetsHelp);
  else if (is_list && (is_plain || wants_json))
    list(filter, wants_json);
  else if (is_list && form == "--names")
    list_names(filter);
  else if (is_list && form == "--markdown" && filter.is_empty())
    print_markdown();
  else if (verb == "show" && words.size() == 2 && (is_plain || wants_json) && filter.is_empty())
    show(words[1], wants_json);
  else if (verb == "cp" && words.size() == 3 && is_plain && filter.is_empty())
    copy(words[1], words[2]);
  else
    refuse(arguments);
  return 0;
}

}  // namespace ferry::cli
