#include "src/term/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace ferry::term {

namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

/** The mean of the finite values in each of n bins; NaN for a bin without one. With fewer values
 * than bins, each value keeps its place and the bins between are interpolated. */
std::vector<double> in_columns(std::span<const double> values, size_t n_columns) {
  std::vector<double> columns(n_columns, kNoValue);
  if (values.size() > n_columns) {
    for (size_t c = 0; c < n_columns; ++c) {
      size_t begin = c * values.size() / n_columns, end = (c + 1) * values.size() / n_columns,
             n = 0;
      double sum = 0;
      for (size_t i = begin; i < end; ++i) {
        if (!std::isfinite(values[i])) continue;
        sum += values[i];
        ++n;
      }
      if (n > 0) columns[c] = sum / static_cast<double>(n);
    }
    return columns;
  }
  for (size_t c = 0; c < n_columns; ++c) {
    double at = n_columns < 2 ? 0
                              : static_cast<double>(c) * static_cast<double>(values.size() - 1) /
                                    static_cast<double>(n_columns - 1);
    auto left = static_cast<size_t>(at);
    size_t right = std::min(left + 1, values.size() - 1);
    double share = at - static_cast<double>(left);
    if (std::isfinite(values[left]) && (share == 0 || std::isfinite(values[right])))
      columns[c] = share == 0 ? values[left] : values[left] * (1 - share) + values[right] * share;
  }
  return columns;
}

/** A bitmap of dots; (0, 0) is the top left. */
class Canvas {
 public:
  Canvas(size_t width, size_t height) : width_(width), dots_(width * height) {}
  void set(size_t x, size_t y) { dots_[y * width_ + x] = 1; }
  bool at(size_t x, size_t y) const { return dots_[y * width_ + x] != 0; }

 private:
  size_t width_;
  std::vector<uint8_t> dots_;
};

/** Character of 2 x 4 dots whose top left dot is (x, y), as UTF-8. */
std::string braille(const Canvas& canvas, size_t x, size_t y) {
  static constexpr uint32_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
  uint32_t bits = 0;
  for (size_t row = 0; row < 4; ++row)
    for (size_t column = 0; column < 2; ++column)
      if (canvas.at(x + column, y + row)) bits |= kBits[row][column];
  if (bits == 0) return " ";
  const uint32_t code = 0x2800 + bits;
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

std::string axis_number(double value) {
  return fmt::format("{:.4g}", value == 0 ? 0.0 : value);
}

}  // namespace

std::string draw_curve(std::span<const double> values,
                       const CurveOptions& options,
                       const Terminal& terminal) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  size_t n_left_out = 0;
  for (double value : values) {
    if (!std::isfinite(value)) {
      ++n_left_out;
      continue;
    }
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (low > high) return {};

  const std::string high_text = axis_number(high), low_text = axis_number(low);
  const size_t label_width = std::max(high_text.size(), low_text.size());
  const int drawing = std::min(options.width, terminal.width) - static_cast<int>(label_width) - 3;
  const auto columns = static_cast<size_t>(std::max(drawing, 8)),
             lines = static_cast<size_t>(std::max(options.height, 2));
  const size_t dots_x = terminal.has_utf8 ? 2 : 1, dots_y = terminal.has_utf8 ? 4 : 1;
  const size_t width = columns * dots_x, height = lines * dots_y;

  Canvas canvas(width, height);
  const std::vector<double> heights = in_columns(values, width);
  const auto row_of = [&](double value) {
    // Halves, so that the range itself cannot overflow.
    double share = high > low ? (value / 2 - low / 2) / (high / 2 - low / 2) : 0.5;
    return static_cast<size_t>(std::lround((1 - share) * static_cast<double>(height - 1)));
  };
  for (size_t x = 0; x < width; ++x) {
    if (!std::isfinite(heights[x])) continue;
    size_t row = row_of(heights[x]);
    canvas.set(x, row);
    if (x == 0 || !std::isfinite(heights[x - 1]) || dots_x == 1) continue;
    size_t before = row_of(heights[x - 1]);  // close the step between neighbours
    for (size_t y = std::min(before, row) + 1; y < std::max(before, row); ++y)
      canvas.set(x, y);
  }

  std::string text =
      options.title.empty() ? "" : styled(options.title, Style::bold, terminal) + '\n';
  for (size_t line = 0; line < lines; ++line) {
    std::string label = line == 0 ? high_text : line + 1 == lines ? low_text : "";
    std::string drawn;
    for (size_t c = 0; c < columns; ++c)
      drawn += terminal.has_utf8    ? braille(canvas, c * 2, line * 4)
               : canvas.at(c, line) ? "*"
                                    : " ";
    drawn.erase(drawn.find_last_not_of(' ') + 1);
    std::string axis =
        terminal.has_utf8 ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
    text += fmt::format("{:>{}} {}{}\n", label, label_width, axis,
                        styled(drawn, Style::cyan, terminal));
  }
  const std::string first = axis_number(options.first_x);
  const std::string last = fmt::format(
      "{} {}", options.x_name,
      axis_number(options.last_x > 0 ? options.last_x : static_cast<double>(values.size())));
  const size_t gap =
      columns > first.size() + last.size() ? columns - first.size() - last.size() : 1;
  text += fmt::format("{}{}{}{}\n", std::string(label_width + 2, ' '), first, std::string(gap, ' '),
                      last);
  if (n_left_out > 0)
    text += fmt::format("({} values that are not finite are left out)\n", n_left_out);
  return text;
}

}  // namespace ferry::term
