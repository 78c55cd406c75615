#include "src/files/user_data.h"

#include <cstdlib>

namespace ferry {

namespace {

std::filesystem::path file_in(const char* variable, const char* in_home, std::string_view name) {
  const char *place = std::getenv(variable), *home = std::getenv("HOME");
  if (place && *place) return std::filesystem::path(place) / "ferry" / name;
  if (home && *home) return std::filesystem::path(home) / in_home / "ferry" / name;
  return {};
}

}  // namespace

std::filesystem::path user_data_file(std::string_view name) {
  return file_in("XDG_DATA_HOME", ".local/share", name);
}

std::filesystem::path user_cache_file(std::string_view name) {
  return file_in("XDG_CACHE_HOME", ".cache", name);
}

}  // namespace ferry
