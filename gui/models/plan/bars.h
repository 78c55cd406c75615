#pragma once
// Stacked bars as data: gui/widgets/charts/stacked_bars.h draws them.

#include <QString>
#include <vector>

namespace ferry::gui {

struct BarSegment {
  int kind = 0;  ///< colour and pattern; the same in all bars
  QString name;  ///< "activations"
  double value = 0;
  QString text;  ///< the value with its unit: "3.20 GiB"
};

struct Bar {
  QString name;     ///< "GPU memory"
  QString caption;  ///< "7.91 of 10.40 GiB"
  std::vector<BarSegment> segments;
  double limit = 0;    ///< 0: none, or not known
  QString limit_name;  ///< "limit 10.40 GiB"
  double scale = 1;    ///< the value at the right end

  double total() const {
    double sum = 0;
    for (const BarSegment& segment : segments)
      sum += segment.value;
    return sum;
  }
  bool is_over() const { return limit > 0 && total() > limit; }
};

}  // namespace ferry::gui
