#pragma once
// Places outside a run's directory that the user has named on this machine. A run may come from
// somebody else, its config.toml with it: Ferry writes to a place that such a file names only where
// the user has named the same place before.

#include <filesystem>
#include <string>
#include <vector>

namespace ferry::config {

class Config;

/** $XDG_DATA_HOME/ferry/places (~/.local/share), one absolute path a line. Empty where there is
 * neither variable: then no place is known. */
std::filesystem::path named_places_file();

/** Keeps the directories of nvme_path and token_cache, for the user has named them: a run that is
 * resumed then takes them from its config.toml. Never throws: where they cannot be kept, the user
 * has to name them again. */
void remember_places(const Config& config) noexcept;

/** The file lies in a run's directory. */
bool is_settings_of_run(const std::filesystem::path& file);

/** Forgets nvme_path and token_cache where nobody has named their directories here, and the trace,
 * which was of the run's first steps. Called right after the settings of a run were read; a line
 * about each that is left out. */
std::vector<std::string> take_back_places(Config& config);

}  // namespace ferry::config
