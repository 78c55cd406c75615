#include "src/service/runs/series.h"

#include <algorithm>
#include <cmath>

namespace ferry::service {

void SeriesPoint::add(const SeriesPoint& next) {
  last_step = next.last_step;
  n_nonfinite += next.n_nonfinite;
  if (next.n_finite == 0) return;
  if (n_finite == 0) {
    min = next.min;
    max = next.max;
    mean = next.mean;
    n_finite = next.n_finite;
    return;
  }
  min = std::min(min, next.min);
  max = std::max(max, next.max);
  // Shares, not sums: the largest numbers stay finite.
  const auto all = static_cast<double>(n_finite + next.n_finite);
  mean = mean * (static_cast<double>(n_finite) / all) +
         next.mean * (static_cast<double>(next.n_finite) / all);
  n_finite += next.n_finite;
}

void Series::add(int64_t step, double value) {
  const bool is_finite = std::isfinite(value);
  last_ = is_finite ? value : std::nan("");
  n_nonfinite_ += !is_finite;
  const double kept = is_finite ? value : 0;
  const SeriesPoint point = {step, step, kept, kept, kept, is_finite, !is_finite};
  const bool begins_point = n_values_++ % values_per_point_ == 0;
  if (!begins_point) return points_.back().add(point);
  if (points_.size() == points_max_) halve();
  points_.push_back(point);
}

void Series::halve() {
  for (size_t i = 0; i < points_.size() / 2; ++i) {
    points_[i] = points_[2 * i];
    points_[i].add(points_[2 * i + 1]);
  }
  points_.resize(points_.size() / 2);
  values_per_point_ *= 2;
}

}  // namespace ferry::service
