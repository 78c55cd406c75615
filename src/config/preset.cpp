#include "src/config/preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/options/option.h"
#include "src/files/paths.h"

namespace ferry::config {
namespace {

namespace fs = std::filesystem;

/** True where the words of `typed`, which dashes part, are words of the name in the same order. */
bool has_words_of(std::string_view name, std::string_view typed) {
  const std::string wanted = normalized_name(typed) + '_', words = normalized_name(name) + '_';
  size_t at = 0;
  for (size_t begin = 0; begin < wanted.size(); begin = wanted.find('_', begin) + 1) {
    const std::string_view word =
        std::string_view(wanted).substr(begin, wanted.find('_', begin) + 1 - begin);
    while (at < words.size() && !std::string_view(words).substr(at).starts_with(word))
      at = words.find('_', at) + 1;
    if (at >= words.size()) return false;
    at += word.size();
  }
  return true;
}

/** "did you mean 'a', 'b' or 'c'?"; empty where no name is like the one that was typed. */
std::string names_meant(std::string_view typed, const std::vector<std::string_view>& names) {
  constexpr size_t kMost = 5;
  std::vector<std::string> meant;
  for (const std::string_view name : names)
    if (typed.size() > 2 && has_words_of(name, typed)) meant.push_back(fmt::format("'{}'", name));
  if (meant.empty())
    if (const std::string nearest = nearest_name(typed, names); !nearest.empty())
      meant.push_back(fmt::format("'{}'", nearest));
  if (meant.empty() || meant.size() > kMost) return {};
  const std::string last = meant.back();
  meant.pop_back();
  return fmt::format("did you mean {}{}{}?", fmt::join(meant, ", "), meant.empty() ? "" : " or ",
                     last);
}

}  // namespace

fs::path users_preset_directory() {
  std::string base = environment_variable("XDG_CONFIG_HOME");
  if (base.empty()) {
    base = environment_variable("HOME");
    if (base.empty()) return {};
    base += "/.config";
  }
  return fs::path(base) / "ferry" / "presets";
}

std::vector<Preset> list_presets() {
  std::map<std::string, Preset> presets;  // the first found of a name wins
  auto add_directory = [&](const fs::path& directory, bool is_users) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error)) {
      const fs::path& file = entry.path();
      if (file.extension() != ".toml" || !fs::is_regular_file(file, error)) continue;
      std::string name = file.stem().string();
      presets.try_emplace(name, Preset{name, file, is_users});
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
    return {file.stem().string(), file, true};
  const std::string meant = names_meant(name_or_file, names);
  throw Error(Fault::usage, "config.preset", fmt::format("no preset '{}'", name_or_file),
              meant.empty() ? "ferry presets ls lists them; a file is given as NAME.toml" : meant);
}

}  // namespace ferry::config
