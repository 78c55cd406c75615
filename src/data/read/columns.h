#pragma once
// Which column is the text, which the label. Private to src/data. Names come from a header or from
// JSON keys; a file without a header has numbers from 0.

#include <optional>
#include <string>
#include <vector>

#include "src/data/read/formats/delimited.h"
#include "src/data/read/reader.h"

namespace ferry {

struct Columns {
  size_t text = 0;
  std::optional<size_t> text_pair;
  std::vector<size_t> labels;  // empty: none
  std::string note;            // what was chosen and why, for the user; without the file
};

/** By the options; else by well-known names (sentence1 with sentence2, text, label, ...); else, of
 * two columns, the one with fewer different values is the label, and of one, it is the text.
 * Error(usage) when a column asked for is not there or is asked for twice, Error(data) when nothing
 * tells or the lines hold another delimiter. names: of the columns, empty without a header. sample:
 * the first rows, may be empty. delimiter: that the rows were split at, '\0' for JSON. */
Columns choose_columns(const std::vector<std::string>& names,
                       const std::vector<DelimitedRow>& sample,
                       const DatasetOptions& options,
                       std::string_view file,
                       char delimiter);

/** True if the first of the sample rows is a header: it holds a column asked for by name, or a
 * well-known name, or a word above a column of numbers. */
bool looks_like_header(const std::vector<DelimitedRow>& sample, const DatasetOptions& options);

}  // namespace ferry
