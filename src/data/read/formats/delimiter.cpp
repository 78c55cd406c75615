#include "src/data/read/formats/delimiter.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/base/error.h"
#include "src/data/read/columns.h"

namespace ferry {
namespace {

constexpr size_t kRowsToTry = 2000;

Quoting quoting_of(char delimiter, QuotingChoice choice) {
  switch (choice) {
    case QuotingChoice::none:
      return Quoting::none;
    case QuotingChoice::strict:
      return Quoting::strict;
    case QuotingChoice::automatic:
      break;
  }
  return delimiter == '\t' ? Quoting::lenient : Quoting::strict;
}

/** The first rows; none where they cannot be split or have different numbers of columns. */
std::vector<DelimitedRow> even_rows(std::string_view text,
                                    std::string_view file,
                                    char delimiter,
                                    Quoting quoting) {
  std::vector<DelimitedRow> rows;
  DelimitedReader reader(text, file, delimiter, quoting);
  DelimitedRow row;
  try {
    while (rows.size() < kRowsToTry && reader.next(row)) {
      if (!rows.empty() && row.fields.size() != rows.front().fields.size()) return {};
      rows.push_back(row);
    }
  } catch (const Error&) {  // whoever reads the file with this delimiter says it
    return {};
  }
  return rows;
}

}  // namespace

std::string plural_of_delimiter(char delimiter) {
  switch (delimiter) {
    case ',':
      return "commas";
    case '\t':
      return "tabs";
    case ';':
      return "semicolons";
    case '|':
      return "bars (|)";
    default:
      return fmt::format("'{}'", delimiter);
  }
}

Separation choose_separation(std::string_view text,
                             std::string_view file,
                             const DatasetOptions& options,
                             DatasetFormat format) {
  Separation chosen;
  const std::string_view first_line = text.substr(0, text.find('\n'));
  const bool is_told = trim(first_line).size() == 5 && first_line.starts_with("sep=");
  if (is_told) chosen.n_skipped = std::min(first_line.size() + 1, text.size());
  text.remove_prefix(chosen.n_skipped);

  const char expected = format == DatasetFormat::csv ? ',' : '\t';
  chosen.delimiter = options.delimiter ? options.delimiter : is_told ? first_line[4] : expected;
  chosen.quoting = quoting_of(chosen.delimiter, options.quoting);
  if (options.delimiter || is_told || format != DatasetFormat::csv) return chosen;

  const auto as_expected = even_rows(text, file, chosen.delimiter, chosen.quoting);
  if (!as_expected.empty() && as_expected.front().fields.size() > 1) return chosen;
  for (char other : {';', '\t', '|'}) {
    const Quoting quoting = quoting_of(other, options.quoting);
    const auto rows = even_rows(text, file, other, quoting);
    if (rows.empty() || rows.front().fields.size() < 2) continue;
    if (options.labels != LabelUse::required && !looks_like_header(rows, options)) continue;
    chosen.delimiter = other;
    chosen.quoting = quoting;
    chosen.note = fmt::format("{}: columns are split at {}", file, plural_of_delimiter(other));
    break;
  }
  return chosen;
}

}  // namespace ferry
