// ferry presets ls | show NAME.

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/cli/commands.h"
#include "src/config/config.h"
#include "src/config/paths.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

constexpr std::string_view kHelp =
    "ferry presets - list and show settings that belong together\n\n"
    "usage: ferry presets ls [--json]\n"
    "       ferry presets show NAME\n\n"
    "Presets are TOML files that come with Ferry, or your own in $XDG_CONFIG_HOME/ferry/presets "
    "(~/.config);\n"
    "your own hides a built-in one of the same name. Use one with ferry train --preset NAME.\n";

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

void show(const std::string& name) {
  const config::Preset preset = config::find_preset(name);
  config::Config checked;
  config::read_toml_file(checked, preset.file, config::Source::preset);  // a broken one says so
  std::ifstream stream(preset.file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  fmt::print(stderr, "# {}\n", preset.file.string());
  fmt::print("{}", text);
}

}  // namespace

int run_presets(Arguments arguments) {
  bool wants_json = false;
  std::vector<std::string> words;
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h") {
      fmt::print("{}", kHelp);
      return 0;
    }
    if (argument == "--json")
      wants_json = true;
    else
      words.push_back(argument);
  }
  if (words == std::vector<std::string>{"ls"})
    list(wants_json);
  else if (words.size() == 2 && words[0] == "show" && !wants_json)
    show(words[1]);
  else
    throw Error(Fault::usage, "cli.presets",
                fmt::format("'ferry presets {}'", fmt::join(words, " ")),
                "usage: ferry presets ls [--json] | show NAME");
  return 0;
}

}  // namespace ferry::cli
