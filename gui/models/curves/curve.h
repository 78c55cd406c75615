#pragma once
// A run's curve as a chart draws it: points of a Series as lines, smoothed, in words. No widgets.

#include <QString>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/service/runs/metrics_reader.h"
#include "src/service/runs/series.h"

namespace ferry::gui {

/** How a curve's values are written. */
enum class ValueUnit : uint8_t { number, bytes, percent, per_second, milliseconds, seconds };

/** "1.834", "6.10 GiB", "97.3 %"; "not finite" of NaN. */
QString value_text(double value, ValueUnit unit);
QString step_text(double step);
/** Short enough for an axis: "12k", "1.5 GiB". */
QString tick_text(double value, ValueUnit unit);

/** A corner of a line; y is NaN where the line has a gap. */
struct CurvePoint {
  double x = 0, y = 0;
};

/** The points of steps in [first, last], with a neighbour at each side, so that a line reaches the
 * edge. */
std::span<const service::SeriesPoint> visible_points(std::span<const service::SeriesPoint> points,
                                                     double first,
                                                     double last);

/** The values; of a point that holds several the least and the greatest, which a line between them
 * shows. `is_log`: what is not positive is a gap. */
std::vector<CurvePoint> raw_line(std::span<const service::SeriesPoint> points, bool is_log = false);

/** An exponential mean, without the pull to zero at its beginning. A point of n values counts as n
 * times its mean. */
class Smoother {
 public:
  /** weight: of what came before, 0 (none) to below 1. */
  explicit Smoother(double weight) : weight_(weight) {}
  void add(const service::SeriesPoint& point);
  /** NaN before the first value. */
  double value() const;

 private:
  double weight_, sum_ = 0, share_ = 0;
};

/** Goes on from `smoother`, which what lies before the points has gone through. */
std::vector<CurvePoint> smooth_line(std::span<const service::SeriesPoint> points,
                                    Smoother smoother,
                                    bool is_log = false);

/** The same line to look at with some 2 * n_parts corners: the least and the greatest of each part,
 * and its gaps. */
std::vector<CurvePoint> reduced(std::vector<CurvePoint> line, size_t n_parts);

struct Extent {
  double min, max;
};
/** nullopt where no value is finite (is_log: and positive). */
std::optional<Extent> extent_of(std::span<const service::SeriesPoint> points, bool is_log = false);
/** The value that this share of the values does not exceed, of points by their mean. NaN: none. */
double percentile(std::span<const service::SeriesPoint> points, double share);

/** The first step with a value that is not finite. */
std::optional<int64_t> first_nonfinite(std::span<const service::SeriesPoint> points);

/** The point nearest to a step; null where there is none with a value. */
const service::SeriesPoint* nearest_point(std::span<const service::SeriesPoint> points,
                                          double step);

/** "Training loss: 512 points, last 1.83, falling": a chart in words. */
QString curve_in_words(const QString& name, const service::Series* series, ValueUnit unit);

/** The exact rows of a range of steps, read in turns so that no turn is long. */
class ExactRange {
 public:
  ExactRange(const service::MetricsReader& reader,
             std::vector<std::string> keys,
             int64_t first_step,
             int64_t last_step);

  /** Rows that one turn reads: some 5 ms. */
  static constexpr int64_t kRows_a_turn = 1200;
  /** Rows that a range may have. */
  static constexpr int64_t kRows_max = 24'000;

  /** Reads on; true once all is read. Throws Error(data) where the file cannot be read. */
  bool advance();
  bool is_done() const { return is_done_; }
  /** The range has more rows than kRows_max: the rest is not here. */
  bool is_cut() const { return is_cut_; }
  int64_t first_step() const { return first_; }
  int64_t last_step() const { return last_; }
  /** Null where the range has no such value. */
  const service::Series* find(const std::string& key) const;

 private:
  const service::MetricsReader& reader_;
  std::vector<std::string> keys_;
  std::vector<service::Series> series_;
  int64_t first_, last_;
  int64_t at_step_, n_of_step_ = 0;  ///< the row to go on after
  int64_t n_rows_ = 0;
  bool is_done_ = false, is_cut_ = false;
};

}  // namespace ferry::gui
