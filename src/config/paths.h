#pragma once
// Where things that come with Ferry lie: presets, models in a .venv. Looked for beside the running
// program (installed tree), then in the source tree this was built from.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::config {

/** Directory of the running program, from /proc/self/exe. */
std::filesystem::path program_directory();

/** The run's directory of a path that names a run or one of its checkpoint-N. */
std::filesystem::path run_of_checkpoint(const std::filesystem::path& path);

/** An environment variable; empty when unset. */
std::string environment_variable(const char* name);

struct Preset {
  std::string name;  // "minilm-classify"
  std::filesystem::path file;
  bool is_users = false;    // from $XDG_CONFIG_HOME/ferry/presets
  std::string description;  // first comment line of the file
};

/** Where the presets lie that come with Ferry, the installed ones first. */
std::vector<std::filesystem::path> own_preset_directories();

/** All presets by name; a user's own hides a built-in one of the same name. */
std::vector<Preset> list_presets();

/** A preset by name, or by the path of a .toml file. Throws Error(usage) with the nearest name. */
Preset find_preset(std::string_view name_or_file);

}  // namespace ferry::config
