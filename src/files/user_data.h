#pragma once
// Files that Ferry keeps for a user, of all runs: the machine's profile, the index of runs, caches.

#include <filesystem>
#include <string_view>

namespace ferry {

/** $XDG_DATA_HOME/ferry/NAME, else ~/.local/share/ferry/NAME; empty where there is neither variable
 * (XDG Base Directory Specification). Makes nothing. */
std::filesystem::path user_data_file(std::string_view name);

/** The same of what can be made again: $XDG_CACHE_HOME/ferry/NAME, else ~/.cache/ferry/NAME. */
std::filesystem::path user_cache_file(std::string_view name);

}  // namespace ferry
