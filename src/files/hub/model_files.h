#pragma once
// Which of a repository's files a model is made of: a repository often has the same weights several
// times, for other programs.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/files/hub/hub_cache.h"

namespace ferry::hub {

/** What is wanted of a model: its shape, with all that has no weights, or everything. */
enum class ModelPart : uint8_t { config, small, all };

/** The repository has an adapter in PEFT's form, and no model of its own. */
bool is_adapter(const RepoTree& tree);

/** The list of a model's shards, which has to be here before its files are known; nullptr: none. */
const RemoteFile* weights_index(const RepoTree& tree);

/** The files that a model or an adapter is made of. `index`: the text of weights_index(), where
 * there is one. Throws Error(data) where the repository has no config.json, or no weights that
 * Ferry reads. */
std::vector<RemoteFile> files_of_model(const RepoTree& tree,
                                       const std::optional<std::string>& index,
                                       ModelPart part,
                                       const RepoName& repo);

/** Files that readers of a model look for and that the repository does not have. */
std::vector<std::string> absent_files_of_model(const RepoTree& tree);

/** True for files of weights. */
bool is_weights(std::string_view path);
/** False for what is kept beside a model and read by nobody: its licence, its page. */
bool is_needed(std::string_view path);

/** A directory has a model's configuration and each of its files of weights, or an adapter's. */
bool is_whole_model(const std::filesystem::path& directory);

}  // namespace ferry::hub
