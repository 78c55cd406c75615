#include "src/files/user_data.h"

#include <cstdlib>

namespace ferry {

std::filesystem::path user_data_file(std::string_view name) {
  const char *data = std::getenv("XDG_DATA_HOME"), *home = std::getenv("HOME");
  if (data && *data) return std::filesystem::path(data) / "ferry" / name;
  if (home && *home) return std::filesystem::path(home) / ".local/share/ferry" / name;
  return {};
}

}  // namespace ferry
