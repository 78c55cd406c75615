#pragma once
// Names of labels that are numbers in the data, as the datasets library keeps them beside it: in
// the metadata of a Parquet or Arrow file, or in a dataset_info.json. Private to src/data.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

/** The names of the labels 0, 1, ... of a column, or of those in its lists; empty where nothing
 * names them. `metadata`: the text of the schema's key "huggingface", may be empty; without names
 * there, a dataset_info.json or dataset_infos.json is asked that lies beside `file`, or above it
 * where its folder is named data. Error(data) where a name is damaged. */
std::vector<std::string> class_label_names(const std::filesystem::path& file,
                                           std::string_view metadata,
                                           const std::string& column);

}  // namespace ferry
