#include "src/measure/timing.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "src/base/median.h"

namespace ferry::measure {

double sample(const Bound& bound, const std::function<double(int n)>& run) {
  constexpr int kTimes_max = 1000;
  constexpr double kShort_s = 1e-9;
  const auto start = Clock::now();
  const double each_s = bound.seconds / std::max(1, bound.n_samples),
               before_s = bound.before ? kBefore_share * each_s : 0;
  run(1);
  if (bound.before) bound.before(before_s);
  const double once = std::max(run(1), kShort_s);
  const double times = (each_s - before_s) / once;
  if (times <= 1 && once >= bound.seconds) return once;
  const int n = static_cast<int>(std::clamp(times, 1.0, double{kTimes_max}));
  std::vector<double> seconds;
  for (int i = 0; i < bound.n_samples && (seconds.empty() || seconds_since(start) < bound.seconds);
       ++i) {
    if (bound.before && i > 0) bound.before(before_s);
    seconds.push_back(run(n) / n);
  }
  return std::max(median(std::move(seconds)), kShort_s);
}

std::string first_line_of(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(value))) - 3);
  // Above one the unit is whole and so is the product; below, dividing keeps the digits short.
  return unit >= 1 ? std::round(value / unit) * unit : std::round(value / unit) / (1 / unit);
}

}  // namespace ferry::measure
