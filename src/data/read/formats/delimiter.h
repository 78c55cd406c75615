#pragma once
// At which character the columns of a CSV or TSV file are split, and whether quotes mean anything.
// Private to src/data.

#include <string>
#include <string_view>

#include "src/data/read/formats/delimited.h"
#include "src/data/read/reader.h"

namespace ferry {

struct Separation {
  char delimiter = ',';
  Quoting quoting = Quoting::strict;
  size_t n_skipped = 0;  // bytes at the beginning that are no rows: Excel's "sep=;" line
  std::string note;      // for the user, where it is not what the file's name says; else empty
};

/** By the options; else by Excel's first line "sep=;"; else tabs for TSV; else commas for CSV,
 * unless its rows are no rows when split at commas and have equally many columns when split at
 * semicolons, tabs or bars. Where one column is enough (prediction), a name of the header must be
 * known as well: texts may hold any character. */
Separation choose_separation(std::string_view text,
                             std::string_view file,
                             const DatasetOptions& options,
                             DatasetFormat format);

/** "commas", "tabs", ...; other characters in quotes. */
std::string plural_of_delimiter(char delimiter);

}  // namespace ferry
