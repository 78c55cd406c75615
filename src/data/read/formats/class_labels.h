#pragma once
// Names of labels that are numbers in the data, as the datasets library keeps them beside it: in
// the metadata of a Parquet or Arrow file, in a dataset_info.json, or in the head of the data set's
// README.md. Private to src/data.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

/** The names of the labels 0, 1, ... of a column, or of those in its lists; empty where nothing
 * names them. `metadata`: the text of the schema's key "huggingface", may be empty; without names
 * there, a dataset_info.json, dataset_infos.json or README.md is asked that lies beside `file`,
 * above it where its folder is named data, or at the top of a data set that was fetched.
 * Error(data) where a name is damaged. */
std::vector<std::string> class_label_names(const std::filesystem::path& file,
                                           std::string_view metadata,
                                           const std::string& column);

}  // namespace ferry
