#pragma once
// Where models lie: directories, runs, $FERRY_MODELS, Python packages, Hugging Face's cache. Reads
// names of files only, never what is in them.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/files/hub/hub_names.h"

namespace ferry::config {

/** The directory of a model: a directory as it is (a run directory gives its final/),
 * $FERRY_MODELS/NAME, a known name from a Python package in .venv (beside the program or in the
 * source tree) or $VIRTUAL_ENV, or what Ferry or Hugging Face's tools have fetched into the hub's
 * cache (NAME or ORGANISATION/NAME, each with @REVISION where it is not main).
 * Throws Error(data) that says where it looked and how to get the model, that a run is not finished
 * and which checkpoint it has, or that no model of its family is trained. */
std::filesystem::path find_model(std::string_view name_or_path);

/** The same, nullopt where there is none. Throws Error(usage) for an empty name. */
std::optional<std::filesystem::path> locate_model(std::string_view name_or_path);

/** True of a directory that holds an adapter in PEFT's format. */
bool is_adapter(const std::filesystem::path& directory);
/** The directory of the model that an adapter is for. Throws Error(data) where it is not on this
 * machine. */
std::filesystem::path find_base(const std::filesystem::path& adapter);
/** The config.json of a model's directory; an adapter may have its model's. */
std::filesystem::path config_file_of(const std::filesystem::path& directory);

/** The repository of a hub that a name means: "ORGANISATION/NAME[@REVISION]", or a name that is
 * known. nullopt for what is a path. Whether there is such a repository nobody has asked. */
std::optional<hub::RepoName> hub_model_of(std::string_view name_or_path);

/** Throws Error(data) for the name of a model of a family that is not trained. */
void refuse_other_families(std::string_view name);

/** The commit that a directory is of, where it lies in the hub's cache. */
std::optional<std::string> commit_of_snapshot(const std::filesystem::path& directory);

/** The configuration of a model that is drawn from scratch. */
struct FoundConfig {
  std::filesystem::path file;  ///< empty: `known` is of a model whose shape is known by its name
  std::string known;           ///< as known_model_config() says
};
/** A config.json, a directory that holds one, or a name as find_model() and known_model_config()
 * take it. Throws Error(data). */
FoundConfig find_config(std::string_view name_or_path);

/** Where Ferry and Hugging Face's tools keep what they fetch: see hub::cache_directory(). */
std::filesystem::path hub_cache_directory();

/** A place where models are looked for, and those that lie there. */
struct ModelPlace {
  struct Model {
    std::string name;  ///< as --model takes it
    std::filesystem::path directory;
  };
  std::string name;            ///< "$FERRY_MODELS"
  std::filesystem::path path;  ///< empty: not set
  std::vector<Model> models;   ///< sorted by name
};

/** $FERRY_MODELS, models/ under the current directory, Hugging Face's cache, Python packages. */
std::vector<ModelPlace> list_model_places();

/** A config.json with the shape of a model that is known by its name, without its weights: enough
 * for a plan. "bert-large-uncased" and "google-bert/bert-large-uncased" alike. */
std::optional<std::string> known_model_config(std::string_view name);

/** The id under which the Hugging Face hub has a model that is known by its name:
 * "google-bert/bert-large-uncased". nullopt where it has no such model, as of a shape alone. */
std::optional<std::string> known_model_id(std::string_view name);

}  // namespace ferry::config
