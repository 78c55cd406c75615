#include "src/files/paths.h"

#include <cstdlib>

namespace ferry {

namespace fs = std::filesystem;

fs::path program_directory() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<fs::path> own_preset_directories() {
  return {program_directory().parent_path() / "share" / "ferry" / "presets",
          fs::path(FERRY_SOURCE_ROOT) / "presets"};
}

fs::path run_of_checkpoint(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  if (!path.filename().string().starts_with("checkpoint-")) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace ferry
