// ferry presets ls | show NAME | cp NAME FILE.

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/config/config.h"
#include "src/config/paths.h"
#include "src/files/plain_file.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

constexpr std::string_view kPresetsHelp =
    "ferry presets - list, show and copy settings that belong together\n\n"
    "usage: ferry presets ls [--json | --names]\n"
    "       ferry presets show NAME\n"
    "       ferry presets cp NAME FILE\n\n"
    "Presets are TOML files that come with Ferry, or your own in $XDG_CONFIG_HOME/ferry/presets "
    "(~/.config);\n"
    "your own hides a built-in one of the same name. Use one with ferry train --preset NAME, or "
    "copy it, "
    "change it, and use the copy with --config FILE.\n";

/** One a line, for shells: the table gives way where a terminal is narrow. */
void list_names() {
  for (const config::Preset& preset : config::list_presets())
    if (preset.name.find('\n') == std::string::npos) fmt::print("{}\n", preset.name);
}

void list(bool wants_json) {
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  term::Table table({{"preset"}, {"from"}, {"what it is"}});
  for (const config::Preset& preset : config::list_presets()) {
    entries.push_back({{"name", preset.name},
                       {"file", preset.file.string()},
                       {"is_users", preset.is_users},
                       {"description", preset.description}});
    table.add_row({preset.name, preset.is_users ? "yours" : "ferry", preset.description});
  }
  if (wants_json)
    fmt::print("{}\n",
               entries.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else
    fmt::print("{}", table.text(term::detect_terminal(1)));
}

/** The preset's file as it is; one that is no preset says so. */
std::string text_of(const config::Preset& preset) {
  config::Config checked;
  config::read_toml_file(checked, preset.file, config::Source::preset);
  return read_text_file(preset.file);
}

void show(const std::string& name) {
  const config::Preset preset = config::find_preset(name);
  const std::string text = text_of(preset);
  fmt::print(stderr, "# {}\n", preset.file.string());
  fmt::print("{}", text);
}

void copy(const std::string& name, const std::filesystem::path& given) {
  const config::Preset preset = config::find_preset(name);
  const std::string text = text_of(preset);
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
  fmt::print(stderr, "{}: use it with ferry train --config {}\n", preset.name, to.string());
}

}  // namespace

int run_presets(Arguments arguments) {
  bool wants_json = false;
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", kPresetsHelp);
      return 0;
    }
    if (argument == "--json")
      wants_json = true;
    else
      words.push_back(argument);
  }
  if (words == std::vector<std::string>{"ls"})
    list(wants_json);
  else if (words == std::vector<std::string>{"ls", "--names"} && !wants_json)
    list_names();
  else if (words.size() == 2 && words[0] == "show" && !wants_json)
    show(words[1]);
  else if (words.size() == 3 && words[0] == "cp" && !wants_json)
    copy(words[1], words[2]);
  else
    throw Error(Fault::usage, "cli.presets",
                fmt::format("'ferry presets {}'", fmt::join(words, " ")),
                "usage: ferry presets ls [--json | --names] | show NAME | cp NAME FILE");
  return 0;
}

}  // namespace ferry::cli
