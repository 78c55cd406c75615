#pragma once
// Aligned tables and bars for a terminal or a pipe.
//
//   Table table({{"tag"}, {"place"}, {"bytes", Align::right}});
//   table.add_row({"weights", "host", format_bytes(n)});
//   fmt::print("{}", table.text(terminal));

#include <string>
#include <vector>

#include "src/term/terminal.h"

namespace ferry::term {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

/** Rows of plain text; cells are made printable, the widest columns give way where the terminal is
 * too narrow. */
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /** One cell a column. */
  void add_row(std::vector<std::string> cells);
  /** A line between the rows before and after (above a sum). */
  void add_rule() { rules_.push_back(rows_.size()); }
  /** Every line ends with a newline; no trailing spaces; titles are bold where there is colour. */
  std::string text(const Terminal& terminal) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<size_t> rules_;  // before these rows
};

/** The width of bars in a table that has a name, a number and little else beside them. */
int bar_width(const Terminal& terminal);

/** `width` columns, filled in proportion of value to limit ("██████▌   "; "######    " in ASCII).
 */
std::string bar(double value, double limit, int width, const Terminal& terminal);

}  // namespace ferry::term
