#include "gui/models/curves/curve.h"

#include <QCoreApplication>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"
#include "src/base/bytes.h"

namespace ferry::gui {

namespace {

using service::SeriesPoint;
using Points = std::span<const SeriesPoint>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct CurveWords {
  Q_DECLARE_TR_FUNCTIONS(ferry::gui::Curve)
};

double shown(double value, bool is_log) {
  return is_log && value <= 0 ? kNan : value;
}

double middle(const SeriesPoint& point) {
  return (static_cast<double>(point.first_step) + static_cast<double>(point.last_step)) / 2;
}

/** "12k", "3.4M": four digits at most. */
QString short_number(double value) {
  constexpr std::pair<double, const char*> kParts[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [size, letter] : kParts)
    if (std::abs(value) >= 10 * size || (std::abs(value) >= size && size > 1e3))
      return QString::number(value / size, 'g', 4) + QLatin1String(letter);
  return QString::number(value, 'g', 4);
}

QString short_bytes(double value) {
  constexpr std::pair<double, const char*> kParts[] = {{static_cast<double>(kGiB), "GiB"},
                                                       {static_cast<double>(kMiB), "MiB"},
                                                       {static_cast<double>(kKiB), "KiB"}};
  for (const auto& [size, name] : kParts)
    if (std::abs(value) >= size)
      return QString::number(value / size, 'g', 4) + ' ' + QLatin1String(name);
  return QString::number(value, 'g', 4) + QLatin1String(" B");
}

/** The mean of the values of the points; NaN of none. */
double mean_of(Points points) {
  SeriesPoint all;
  for (const SeriesPoint& point : points)
    all.add(point);
  return all.n_finite > 0 ? all.mean : kNan;
}

/** The direction of a curve: its last fifth beside the fifth before. */
enum class Trend : uint8_t { unknown, falling, rising, steady };

Trend trend_of(Points points) {
  const size_t n = points.size() / 5;
  const auto extent = extent_of(points);
  if (n == 0 || !extent) return Trend::unknown;
  const double before = mean_of(points.subspan(points.size() - 2 * n, n));
  const double now = mean_of(points.last(n));
  if (!std::isfinite(before) || !std::isfinite(now)) return Trend::unknown;
  constexpr double kSteady = 0.02;  // of the range
  const double size = extent->max - extent->min;
  if (std::abs(now - before) <= kSteady * size || size == 0) return Trend::steady;
  return now < before ? Trend::falling : Trend::rising;
}

}  // namespace

QString step_text(double step) {
  return QLocale().toString(static_cast<qlonglong>(std::llround(step)));
}

QString value_text(double value, ValueUnit unit) {
  if (!std::isfinite(value)) return CurveWords::tr("not finite");
  switch (unit) {
    case ValueUnit::bytes:
      return bytes_text(static_cast<int64_t>(value));
    case ValueUnit::percent:
      return isolated(CurveWords::tr("%1 %").arg(value, 0, 'f', 1));
    case ValueUnit::per_second:
      return isolated(CurveWords::tr("%1/s").arg(value >= 100 ? step_text(value)
                                                              : QString::number(value, 'g', 4)));
    case ValueUnit::milliseconds:
      return isolated(CurveWords::tr("%1 ms").arg(value, 0, 'g', 4));
    case ValueUnit::seconds:
      return isolated(CurveWords::tr("%1 s").arg(value, 0, 'g', 4));
    case ValueUnit::number:
      break;
  }
  return QString::number(value, 'g', 5);
}

QString tick_text(double value, ValueUnit unit) {
  if (unit == ValueUnit::bytes) return short_bytes(value);
  // A tick that rounding has left beside zero is zero.
  return short_number(std::abs(value) < 1e-300 ? 0 : value);
}

Points visible_points(Points points, double first, double last) {
  auto begin = std::ranges::lower_bound(
      points, first, {}, [](const SeriesPoint& p) { return static_cast<double>(p.last_step); });
  auto end = std::ranges::upper_bound(
      points, last, {}, [](const SeriesPoint& p) { return static_cast<double>(p.first_step); });
  if (begin != points.begin()) --begin;
  if (end != points.end()) ++end;
  return begin < end ? Points(begin, end) : Points();
}

std::vector<CurvePoint> raw_line(Points points, bool is_log) {
  std::vector<CurvePoint> line;
  line.reserve(2 * points.size());
  double last = kNan;
  for (const SeriesPoint& point : points) {
    const auto first_step = static_cast<double>(point.first_step);
    const auto last_step = static_cast<double>(point.last_step);
    if (point.n_finite == 0) {
      line.push_back({middle(point), last = kNan});
      continue;
    }
    const double min = shown(point.min, is_log), max = shown(point.max, is_log);
    if (point.min == point.max) {
      line.push_back({middle(point), last = max});
      continue;
    }
    // First the end that is nearer to where the line comes from.
    const bool is_max_first = std::abs(point.max - last) < std::abs(point.min - last);
    line.push_back({first_step, is_max_first ? max : min});
    line.push_back({last_step, last = is_max_first ? min : max});
  }
  return line;
}

void Smoother::add(const SeriesPoint& point) {
  if (point.n_finite == 0) return;
  const double kept =
      point.n_finite == 1 ? weight_ : std::pow(weight_, static_cast<double>(point.n_finite));
  sum_ = kept * sum_ + (1 - kept) * point.mean;
  share_ = kept * share_ + (1 - kept);
}

double Smoother::value() const {
  return share_ > 0 ? sum_ / share_ : kNan;
}

std::vector<CurvePoint> smooth_line(Points points, Smoother smoother, bool is_log) {
  std::vector<CurvePoint> line;
  line.reserve(points.size());
  for (const SeriesPoint& point : points) {
    smoother.add(point);
    line.push_back({middle(point), point.n_finite > 0 ? shown(smoother.value(), is_log) : kNan});
  }
  return line;
}

std::vector<CurvePoint> reduced(std::vector<CurvePoint> line, size_t n_parts) {
  if (line.size() <= 2 * n_parts + 2) return line;
  std::vector<CurvePoint> kept;
  kept.reserve(3 * n_parts + 2);
  for (size_t part = 0; part < n_parts; ++part) {
    const auto begin = line.begin() + static_cast<std::ptrdiff_t>(part * line.size() / n_parts);
    const auto end = line.begin() + static_cast<std::ptrdiff_t>((part + 1) * line.size() / n_parts);
    const CurvePoint *least = nullptr, *greatest = nullptr, *gap = nullptr;
    for (auto point = begin; point != end; ++point) {
      if (std::isnan(point->y)) {
        gap = &*point;
        continue;
      }
      if (!least || point->y < least->y) least = &*point;
      if (!greatest || point->y > greatest->y) greatest = &*point;
    }
    std::array<const CurvePoint*, 3> corners = {least, greatest, gap};
    std::ranges::sort(corners);  // in the order of the line
    for (size_t i = 0; i < corners.size(); ++i)
      if (corners[i] && (i == 0 || corners[i] != corners[i - 1])) kept.push_back(*corners[i]);
  }
  // The ends are where they were.
  if (!std::isnan(line.front().y) && kept.front().x != line.front().x)
    kept.insert(kept.begin(), line.front());
  if (!std::isnan(line.back().y) && kept.back().x != line.back().x) kept.push_back(line.back());
  return kept;
}

std::optional<Extent> extent_of(Points points, bool is_log) {
  Extent extent{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const SeriesPoint& point : points) {
    if (point.n_finite == 0 || (is_log && point.max <= 0)) continue;
    // With values on both sides of zero the mean is the nearest to the least positive one.
    const double min = !is_log || point.min > 0 ? point.min
                       : point.mean > 0         ? point.mean
                                                : point.max;
    extent.min = std::min(extent.min, min);
    extent.max = std::max(extent.max, point.max);
  }
  if (extent.min > extent.max) return std::nullopt;
  return extent;
}

double percentile(Points points, double share) {
  std::vector<std::pair<double, int64_t>> values;
  int64_t n = 0;
  for (const SeriesPoint& point : points)
    if (point.n_finite > 0) {
      values.emplace_back(point.mean, point.n_finite);
      n += point.n_finite;
    }
  if (values.empty()) return kNan;
  std::ranges::sort(values);
  const double wanted = share * static_cast<double>(n);
  int64_t so_far = 0;
  for (const auto& [value, count] : values)
    if (static_cast<double>(so_far += count) >= wanted) return value;
  return values.back().first;
}

std::optional<int64_t> first_nonfinite(Points points) {
  const auto found =
      std::ranges::find_if(points, [](const SeriesPoint& p) { return p.n_nonfinite > 0; });
  if (found == points.end()) return std::nullopt;
  return found->first_step;
}

const SeriesPoint* nearest_point(Points points, double step) {
  const SeriesPoint* nearest = nullptr;
  const auto distance = [step](const SeriesPoint& point) {
    if (step < static_cast<double>(point.first_step))
      return static_cast<double>(point.first_step) - step;
    return std::max(0.0, step - static_cast<double>(point.last_step));
  };
  const auto after = std::ranges::lower_bound(
      points, step, {}, [](const SeriesPoint& p) { return static_cast<double>(p.last_step); });
  if (after != points.end()) nearest = &*after;
  if (after != points.begin())
    if (const auto& before = *std::prev(after); !nearest || distance(before) < distance(*nearest))
      nearest = &before;
  return nearest;
}

QString curve_in_words(const QString& name, const service::Series* series, ValueUnit unit) {
  if (!series || series->n_values() == 0) return CurveWords::tr("%1: no values yet").arg(name);
  const int n = static_cast<int>(std::min<int64_t>(series->n_values(), INT_MAX));
  const QString last = value_text(series->last(), unit);
  QString words;
  switch (trend_of(series->points())) {
    case Trend::falling:
      words = CurveWords::tr("%1: %n points, last %2, falling", nullptr, n).arg(name, last);
      break;
    case Trend::rising:
      words = CurveWords::tr("%1: %n points, last %2, rising", nullptr, n).arg(name, last);
      break;
    case Trend::steady:
      words = CurveWords::tr("%1: %n points, last %2, steady", nullptr, n).arg(name, last);
      break;
    case Trend::unknown:
      words = CurveWords::tr("%1: %n points, last %2", nullptr, n).arg(name, last);
      break;
  }
  return words;
}

ExactRange::ExactRange(const service::MetricsReader& reader,
                       std::vector<std::string> keys,
                       int64_t first_step,
                       int64_t last_step)
    : reader_(reader),
      keys_(std::move(keys)),
      series_(keys_.size(), service::Series(kRows_max)),
      first_(first_step),
      last_(last_step),
      at_step_(first_step) {}

bool ExactRange::advance() {
  if (is_done_) return true;
  int64_t n_read = 0, n_passed = 0;
  const int64_t n_before = n_of_step_;
  bool has_more = false;
  reader_.read_from_step(at_step_, [&](const service::MetricsRow& row) {
    if (row.step > last_) return false;
    if (row.step == at_step_ && n_passed < n_before) {  // the turn before had it
      ++n_passed;
      return true;
    }
    if (n_read >= kRows_a_turn || n_rows_ >= kRows_max) {
      is_cut_ = n_rows_ >= kRows_max;
      has_more = !is_cut_;
      return false;
    }
    n_of_step_ = row.step == at_step_ ? n_of_step_ + 1 : 1;
    at_step_ = row.step;
    ++n_read;
    ++n_rows_;
    for (const auto& [key, value] : row.values)
      if (const auto found = std::ranges::find(keys_, key); found != keys_.end())
        series_[static_cast<size_t>(found - keys_.begin())].add(row.step, value);
    return true;
  });
  return is_done_ = !has_more;
}

const service::Series* ExactRange::find(const std::string& key) const {
  const auto found = std::ranges::find(keys_, key);
  if (found == keys_.end()) return nullptr;
  const service::Series& series = series_[static_cast<size_t>(found - keys_.begin())];
  return series.n_values() > 0 ? &series : nullptr;
}

}  // namespace ferry::gui
