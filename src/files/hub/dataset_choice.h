#pragma once
// Which of a repository's files a data set is made of, and in which order: by the head of its
// README.md, else by the names of its files, as Hugging Face's datasets library reads them. And the
// same for directories that the library has saved. Nothing here asks the network.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/files/hub/hub_cache.h"

namespace ferry::hub {

/** "ORGANISATION/NAME[@REVISION][:CONFIG][:SPLIT]". */
struct DatasetName {
  RepoName repo;
  std::vector<std::string> parts;  ///< at most two: a configuration, a split, or one of them

  std::string text() const;
};

/** nullopt for what is a path: one that is there, one below a directory that is there, or one that
 * ends as a file of data does. */
std::optional<DatasetName> parse_dataset_name(std::string_view text);

/** What a name stands for. */
struct DatasetChoice {
  std::string config, split;
  std::vector<std::string> configs, splits;  ///< that there are
  std::vector<RemoteFile> files;             ///< of the split, in the order of their rows
  bool is_partial = false;                   ///< the hub has converted only the beginning
};

/** `readme`: the text of README.md, where there is one. Without a split: train, or the only one.
 * Throws Error(data): no such configuration or split, several configurations and none named, files
 * of no form that Ferry reads. */
DatasetChoice choose_dataset(const RepoTree& tree,
                             const std::optional<std::string>& readme,
                             const DatasetName& name);

/** The files of a data set that was fetched, from the cache alone. Throws Error(data) where it, or
 * a part of it, is not there. */
std::vector<std::filesystem::path> cached_dataset_files(const DatasetName& name);

/** The same at the commit that its revision is in the cache; unchanged where it is not there. */
DatasetName with_commit(DatasetName name);

/** The files of a directory that the library's save_to_disk has written, in the order of their
 * rows: those of its split train, or of its only one. nullopt for any other directory. Throws
 * Error(data). */
std::optional<std::vector<std::filesystem::path>> saved_dataset_files(
    const std::filesystem::path& directory);

/** Names that the head of a README.md has for the labels of a column of numbers. `path`: of the
 * file with that column, from README.md's directory; where configurations have different names, it
 * tells which of them counts. Empty where nothing names them, or several do. Throws Error(data)
 * where the head is no YAML. */
std::vector<std::string> label_names_of_readme(const std::string& readme,
                                               const std::string& column,
                                               const std::string& path = {});

/** `pattern` with *, ?, [...] within a part, ** for any parts. */
bool matches_pattern(std::string_view path, std::string_view pattern);

}  // namespace ferry::hub
