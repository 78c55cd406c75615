#pragma once
// The files that a dataset's name stands for: one path, a pattern, or several of both. Called by
// the readers, and by who keeps or checks the name before that.

#include <filesystem>
#include <string>
#include <vector>

namespace ferry {

/** "data/a.jsonl", "data/part-*.jsonl", "a.jsonl,b.jsonl". A name that exists is itself, whatever
 * characters it has. Else it is split at commas, and *, ? and [...] in a part stand for the files
 * that match, sorted by their bytes; hidden ones match no *. A part that is the name of a data set
 * of a hub stands for its files in the hub's cache, and a directory of save_to_disk for those that
 * it lists. Any other part is kept whether it exists or not. Throws Error(data) where nothing
 * matches a pattern, where a data set was not fetched, or a file comes twice. */
std::vector<std::filesystem::path> dataset_files(const std::string& name);

/** The names between its commas; itself where a file has that name. */
std::vector<std::string> dataset_parts(const std::string& name);

/** The same name from wherever it is read; of a data set of a hub with the commit that it has now.
 */
std::string absolute_dataset(const std::string& name);

}  // namespace ferry
