#pragma once
// Rows of a CSV or TSV text, one after another. Private to src/data.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

enum class Quoting : uint8_t {
  strict,   // CSV, RFC 4180: a field that starts with a quote ends with one; anything else is an
            // error
  lenient,  // TSV, which many tools write without quoting: such a field is quoted if it is well
            // formed, and else taken as it stands, quotes and all. One that runs over lines and
            // may as well be several rows is an error
  none,     // a quote is a character like any other
};

struct DelimitedRow {
  int64_t line = 0;  // from 1, where the row begins
  std::vector<std::string> fields;
};

/** Splits a text into rows. Lines end in LF or CRLF; empty lines are skipped. A quoted field may
 * hold delimiters, line ends and doubled quotes: as Python's csv and pandas read it by default, but
 * where those two guess at a stray quote, `strict` is an error and `lenient` keeps the text. Copies
 * are cheap and read on from the same row. */
class DelimitedReader {
 public:
  /** `file` names the text in errors. All three outlive the reader. */
  DelimitedReader(std::string_view text,
                  std::string_view file,
                  char delimiter,
                  Quoting quoting,
                  int64_t first_line = 1)
      : text_(text), file_(file), delimiter_(delimiter), quoting_(quoting), line_(first_line) {}

  /** False at the end. Reuses the row's memory. Error(data) with file:line on a malformed quote. */
  bool next(DelimitedRow& row);
  /** The place in the text where the next row is looked for. */
  const char* place() const { return text_.data() + at_; }

 private:
  void read_field(std::string& field);
  bool read_quoted(std::string& field);
  void refuse_swallowed_rows(std::string_view quoted, size_t end) const;
  bool at_line_end(size_t at) const;

  std::string_view text_, file_;
  char delimiter_;
  Quoting quoting_;
  size_t at_ = 0;
  int64_t line_;
};

}  // namespace ferry
