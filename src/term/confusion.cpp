#include "src/term/confusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "src/base/error.h"
#include "src/term/table.h"

namespace ferry::term {

namespace {

constexpr int kLabelWidth = 20, kCellWidth = 12, kListed = 10;

std::string padded_left(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ') + text;
}

std::string share_text(int64_t right, int64_t total) {
  return total == 0 ? "-"
                    : fmt::format("{:.1f} %",
                                  100.0 * static_cast<double>(right) / static_cast<double>(total));
}

/** The largest numbers off the diagonal, for matrices that no terminal holds. */
std::string list_confusions(std::span<const std::string> labels,
                            std::span<const int64_t> counts,
                            const Terminal& terminal) {
  struct Confusion {
    int64_t count;
    size_t truth, predicted;
  };
  std::vector<Confusion> confusions;
  const size_t n = labels.size();
  for (size_t t = 0; t < n; ++t)
    for (size_t p = 0; p < n; ++p)
      if (t != p && counts[t * n + p] > 0) confusions.push_back({counts[t * n + p], t, p});
  std::stable_sort(confusions.begin(), confusions.end(),
                   [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  if (confusions.empty()) return fmt::format("{} labels, none taken for another\n", n);
  Table table({{"true"}, {"predicted"}, {"count", Align::right}});
  for (size_t i = 0; i < std::min<size_t>(confusions.size(), kListed); ++i)
    table.add_row({labels[confusions[i].truth], labels[confusions[i].predicted],
                   fmt::format("{}", confusions[i].count)});
  std::string text = table.text(terminal);
  if (confusions.size() > kListed)
    text += fmt::format("and {} other pairs\n", confusions.size() - kListed);
  return text;
}

}  // namespace

std::string draw_confusion_matrix(std::span<const std::string> labels,
                                  std::span<const int64_t> counts,
                                  const Terminal& terminal) {
  const size_t n = labels.size();
  FERRY_CHECK(counts.size() == n * n, "{} counts for {} labels", counts.size(), n);
  if (n == 0) return {};

  int row_width = display_width("true \\ predicted");
  std::vector<std::string> rows, titles;
  std::vector<int> widths;
  for (size_t i = 0; i < n; ++i) {
    rows.push_back(fitted(labels[i], kLabelWidth, terminal));
    titles.push_back(fitted(labels[i], kCellWidth, terminal));
    row_width = std::max(row_width, display_width(rows.back()));
    int width = display_width(titles.back());
    for (size_t t = 0; t < n; ++t)
      width = std::max(width, static_cast<int>(fmt::formatted_size("{}", counts[t * n + i])));
    widths.push_back(width);
  }
  int total = row_width + 2 + 7;
  for (int width : widths)
    total += 2 + width;
  if (total > terminal.width) return list_confusions(labels, counts, terminal);

  std::string head = padded_left("true \\ predicted", row_width), text;
  for (size_t p = 0; p < n; ++p)
    head += "  " + padded_left(titles[p], widths[p]);
  text = styled(head + "    right", Style::bold, terminal) + '\n';
  for (size_t t = 0; t < n; ++t) {
    text += padded_left(rows[t], row_width);
    int64_t row_total = 0;
    for (size_t p = 0; p < n; ++p) {
      const int64_t count = counts[t * n + p];
      row_total += count;
      std::string cell =
          count == 0 && p != t ? (terminal.has_utf8 ? "·" : ".") : fmt::format("{}", count);
      std::string padded = padded_left(cell, widths[p]);
      Style style = p == t ? Style::green : count == 0 ? Style::dim : Style::red;
      text += "  " + styled(padded, style, terminal);
    }
    text += "  " + padded_left(share_text(counts[t * n + t], row_total), 7) + '\n';
  }
  return text;
}

}  // namespace ferry::term
