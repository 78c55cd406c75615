#pragma once
// A curve of numbers (loss by step) drawn with characters.

#include <span>
#include <string>

#include "src/term/terminal.h"

namespace ferry::term {

struct CurveOptions {
  int width = 72;   // columns in all, axis included; never more than the terminal's
  int height = 10;  // lines of the drawing, without the line below the axis
  std::string title = {};
  std::string x_name = "step";
  double first_x = 1;  // x of the first and the last value
  double last_x = 0;   // 0: the number of values
};

/** Values in order, in braille (2 x 4 dots a character) or, without UTF-8, one '*' a column. More
 * values than columns are averaged; non-finite values leave gaps and are counted below. Empty text
 * when there is no finite value. */
std::string draw_curve(std::span<const double> values,
                       const CurveOptions& options,
                       const Terminal& terminal);

}  // namespace ferry::term
