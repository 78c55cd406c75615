#pragma once
// The columns of a file whose rows are objects, for forms that let somebody choose among them.

#include <filesystem>
#include <string>
#include <vector>

namespace ferry {

/** The names of the fields of the first row of a JSON list, a Parquet or an Arrow file, in the
 * file's order; empty where it has no rows, or is a file of another kind. Reads no more than the
 * file's first piece of a table, and all of a JSON list. Throws Error(data) where the file is
 * damaged or cannot be read here. */
std::vector<std::string> fields_of_first_row(const std::filesystem::path& file);

}  // namespace ferry
