#pragma once
// Where things that come with Ferry lie: presets, models in a .venv. Looked for beside the running
// program (installed tree), then in the source tree this was built from.

#include <filesystem>
#include <string>
#include <vector>

namespace ferry {

/** Directory of the running program, from /proc/self/exe. */
std::filesystem::path program_directory();

/** The run's directory of a path that names a run or one of its checkpoint-N. */
std::filesystem::path run_of_checkpoint(const std::filesystem::path& path);

/** An environment variable; empty when unset. */
std::string environment_variable(const char* name);

/** Where the presets lie that come with Ferry, the installed ones first. */
std::vector<std::filesystem::path> own_preset_directories();

}  // namespace ferry
