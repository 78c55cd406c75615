#include "src/term/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"

namespace ferry::term {

namespace {

constexpr int kGap_columns = 2, kNarrowest = 6;

std::string padded(const std::string& text, int width, Align align) {
  const std::string spaces(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
  return align == Align::right ? spaces + text : text + spaces;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  FERRY_CHECK(cells.size() == columns_.size(), "{} cells in a table of {} columns", cells.size(),
              columns_.size());
  for (std::string& cell : cells)
    cell.erase(cell.find_last_not_of(' ') + 1);  // the empty end of a bar takes no column
  rows_.push_back(std::move(cells));
}

std::string Table::text(const Terminal& terminal) const {
  std::vector<int> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    int width = display_width(columns_[c].title);
    for (const auto& row : rows_)
      width = std::max(width, display_width(printable(row[c], terminal)));
    widths.push_back(width);
  }
  auto total = [&] {
    int sum = kGap_columns * static_cast<int>(widths.size() - 1);
    for (int width : widths)
      sum += width;
    return sum;
  };
  while (terminal.is_terminal && total() > terminal.width) {
    auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kNarrowest) break;
    --*widest;
  }

  auto line_of = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line += std::string(kGap_columns, ' ');
      line += padded(fitted(cells[c], widths[c], terminal), widths[c], columns_[c].align);
    }
    return without_trailing_spaces(line);
  };
  std::vector<std::string> titles;
  bool has_titles = false;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    has_titles = has_titles || !column.title.empty();
  }
  std::string result;
  if (has_titles) {
    std::string line = line_of(titles);
    line.pop_back();
    result = styled(line, Style::bold, terminal) + '\n';
  }
  std::string rule;
  for (int i = 0; i < total(); ++i)
    rule += terminal.has_utf8 ? "─" : "-";
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (std::find(rules_.begin(), rules_.end(), r) != rules_.end()) result += rule + '\n';
    result += line_of(rows_[r]);
  }
  return result;
}

int bar_width(const Terminal& terminal) {
  constexpr int kWidest = 24, kNarrowest_bar = 8, kBeside = 38;
  if (!terminal.is_terminal) return kWidest;
  return std::clamp(terminal.width - kBeside, kNarrowest_bar, kWidest);
}

std::string bar(double value, double limit, int width, const Terminal& terminal) {
  double share = limit > 0 && std::isfinite(value) ? std::clamp(value / limit, 0.0, 1.0) : 0.0;
  const int eighths = static_cast<int>(std::lround(share * width * 8));
  std::string result;
  int columns = 0;
  if (!terminal.has_utf8) {
    columns = (eighths + 4) / 8;
    result.assign(static_cast<size_t>(columns), '#');
  } else {
    for (; columns < eighths / 8; ++columns)
      result += "█";
    static constexpr const char* kParts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (eighths % 8 != 0) {
      result += kParts[eighths % 8];
      ++columns;
    }
  }
  return result + std::string(static_cast<size_t>(width - columns), ' ');
}

}  // namespace ferry::term
