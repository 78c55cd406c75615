#pragma once
// A curve with a bounded number of points, however many values it has: for charts of runs of a
// million steps.

#include <cstdint>
#include <span>
#include <vector>

namespace ferry::service {

/** One value, or several that follow each other. */
struct SeriesPoint {
  int64_t first_step = 0, last_step = 0;
  double min = 0, max = 0, mean = 0;  ///< of those that are finite
  int64_t n_finite = 0;
  int64_t n_nonfinite = 0;  ///< NaN and infinity; with n_finite = 0 the curve has a gap

  void add(const SeriesPoint& next);
};

/** While there are few values each is a point. Where there are more than `points_max`, two
 * neighbours become one point, again and again: least and largest values are never lost. */
class Series {
 public:
  /** points_max: even, at least 2. */
  explicit Series(size_t points_max) : points_max_(points_max) {}

  /** Steps do not fall. */
  void add(int64_t step, double value);

  /** By step; the last one may hold fewer values than the others. */
  std::span<const SeriesPoint> points() const { return points_; }
  int64_t n_values() const { return n_values_; }
  int64_t n_nonfinite() const { return n_nonfinite_; }
  /** Values in each point but the last one. */
  int64_t values_per_point() const { return values_per_point_; }
  /** The newest value; NaN where it is not finite. */
  double last() const { return last_; }

 private:
  void halve();

  size_t points_max_;
  std::vector<SeriesPoint> points_;
  int64_t values_per_point_ = 1, n_values_ = 0, n_nonfinite_ = 0;
  double last_ = 0;
};

}  // namespace ferry::service
