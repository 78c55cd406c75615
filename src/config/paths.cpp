#include "src/config/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "src/base/error.h"
#include "src/config/options/option.h"

namespace ferry::config {

namespace fs = std::filesystem;

fs::path program_directory() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

namespace {

fs::path users_preset_directory() {
  std::string base = environment_variable("XDG_CONFIG_HOME");
  if (base.empty()) {
    base = environment_variable("HOME");
    if (base.empty()) return {};
    base += "/.config";
  }
  return fs::path(base) / "ferry" / "presets";
}

/** The first comment of the file, without '#': what `ferry presets ls` shows. */
std::string first_comment(const fs::path& file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return {};  // reading it says what it is
  std::string head(4096, '\0');  // of a file that is no preset, a line may never end
  std::ifstream from(file, std::ios::binary);
  from.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(from.gcount()));
  std::istringstream stream(head);
  std::string line;
  while (std::getline(stream, line)) {
    size_t begin = line.find_first_not_of("# \t");
    if (line.starts_with('#') && begin != std::string::npos) return line.substr(begin);
    if (!line.empty() && !line.starts_with('#')) break;
  }
  return {};
}

}  // namespace

std::vector<fs::path> own_preset_directories() {
  return {program_directory().parent_path() / "share" / "ferry" / "presets",
          fs::path(FERRY_SOURCE_ROOT) / "presets"};
}

std::vector<Preset> list_presets() {
  std::map<std::string, Preset> presets;  // the first found of a name wins
  auto add_directory = [&](const fs::path& directory, bool is_users) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      const fs::path& file = entry.path();
      if (file.extension() != ".toml" || !fs::is_regular_file(file, error)) continue;
      std::string name = file.stem().string();
      presets.try_emplace(name, Preset{name, file, is_users, first_comment(file)});
    }
  };
  add_directory(users_preset_directory(), true);
  for (const fs::path& directory : own_preset_directories())
    add_directory(directory, false);
  std::vector<Preset> list;
  for (auto& [name, preset] : presets)
    list.push_back(std::move(preset));
  return list;
}

Preset find_preset(std::string_view name_or_file) {
  std::vector<Preset> presets = list_presets();
  std::vector<std::string_view> names;
  for (const Preset& preset : presets) {
    if (preset.name == name_or_file) return preset;
    names.push_back(preset.name);
  }
  fs::path file(name_or_file);
  std::error_code error;
  if (file.extension() == ".toml" && fs::exists(file, error) && !fs::is_directory(file, error))
    return {file.stem().string(), file, true, first_comment(file)};
  std::string nearest = nearest_name(name_or_file, names);
  throw Error(Fault::usage, "config.preset", fmt::format("no preset '{}'", name_or_file),
              nearest.empty() ? "ferry presets ls lists them; a file is given as NAME.toml"
                              : fmt::format("did you mean '{}'?", nearest));
}

fs::path run_of_checkpoint(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  if (!path.filename().string().starts_with("checkpoint-")) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

}  // namespace ferry::config
