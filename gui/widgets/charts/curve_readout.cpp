// Read-out and zoom of a chart: the values at a step, and the exact ones of a part of the run.

#include <QLabel>
#include <QLocale>
#include <algorithm>
#include <cmath>

#include "gui/models/text.h"
#include "gui/widgets/charts/curve_chart.h"
#include "gui/widgets/charts/curve_plot.h"

namespace ferry::gui {

using service::SeriesPoint;

const ChartCurve* CurveChart::leading_curve() const {
  const ChartCurve* leading = nullptr;
  size_t n_most = 0;
  for (const ChartCurve& curve : curves_)
    if (const size_t n = points_of(curve).size(); n > n_most) {
      leading = &curve;
      n_most = n;
    }
  return leading;
}

void CurveChart::point_at(double step) {
  const ChartCurve* const curve = leading_curve();
  if (!curve) return;
  const SeriesPoint* const point = nearest_point(points_of(*curve), step);
  if (!point) return;
  // A point with several values is read at the step that was pointed at.
  const double at = std::clamp(std::round(step), static_cast<double>(point->first_step),
                               static_cast<double>(point->last_step));
  if (readout_ == at) return;
  readout_ = at;
  exact_values_.clear();
  show_readout();
  rest_timer_.start();
}

void CurveChart::move_readout(int n_points) {
  const ChartCurve* const curve = leading_curve();
  if (!curve) return;
  const Points points = points_of(*curve);
  size_t at = n_points > 0 ? 0 : points.size() - 1;
  if (const SeriesPoint* const now = readout_ ? nearest_point(points, *readout_) : nullptr) {
    const auto from = static_cast<int64_t>(now - points.data());
    at = static_cast<size_t>(
        std::clamp<int64_t>(from + n_points, 0, static_cast<int64_t>(points.size()) - 1));
  } else {
    // The first key goes to an end of what is seen.
    const SeriesPoint* const edge =
        nearest_point(points, n_points > 0 ? shown_->first : shown_->last);
    at = static_cast<size_t>(edge - points.data());
  }
  const auto step = static_cast<double>(points[at].last_step);
  // The view goes along where the read-out leaves it.
  if (zoom_ && (step < zoom_->first || step > zoom_->second)) {
    const double by = step - (step < zoom_->first ? zoom_->first : zoom_->second);
    zoom_to(zoom_->first + by, zoom_->second + by);
  }
  readout_ = step;
  exact_values_.clear();
  show_readout();
  rest_timer_.start();
}

void CurveChart::show_readout() {
  if (!readout_) {
    where_->clear();
    plot_->show_readout(std::nullopt, {});
    readout_text_.clear();
    plot_->set_readout_text({});
    return show_legend();
  }
  std::vector<LegendEntry> entries;
  std::vector<CurvePlot::Mark> marks;
  QStringList words{tr("Step %1").arg(step_text(*readout_))};
  for (size_t i = 0; i < curves_.size(); ++i) {
    const SeriesPoint* const point = nearest_point(points_of(curves_[i]), *readout_);
    if (!point) continue;
    const bool is_here = *readout_ >= static_cast<double>(point->first_step) &&
                         *readout_ <= static_cast<double>(point->last_step);
    QString text;
    double y = point->n_finite > 0 ? point->mean : std::nan("");
    if (const auto exact = exact_values_.find(i); exact != exact_values_.end() && is_here) {
      y = exact->second;
      text = tr("%1 %2", "name and value of a curve").arg(curves_[i].name, value_text(y, unit_));
    } else if (point->n_finite > 1) {
      text = tr("%1 %2 (%3 to %4)", "name, mean, least and greatest value")
                 .arg(curves_[i].name, value_text(point->mean, unit_),
                      value_text(point->min, unit_), value_text(point->max, unit_));
    } else if (!is_here) {
      text = tr("%1 %2 at step %3")
                 .arg(curves_[i].name, value_text(y, unit_),
                      step_text(static_cast<double>(point->first_step)));
    } else {
      text = tr("%1 %2", "name and value of a curve").arg(curves_[i].name, value_text(y, unit_));
    }
    const double x = is_here ? *readout_ : static_cast<double>(point->first_step);
    if (!is_log_ || y > 0) marks.push_back({x, y, style_of(i)});
    entries.push_back({style_of(i), text});
    words << text;
  }
  where_->setText(words.first());
  legend_->show_entries(std::move(entries));
  plot_->show_readout(readout_, marks);
  readout_text_ = words.join(QStringLiteral("; "));
  plot_->set_readout_text(readout_text_);
}

void CurveChart::read_exact_values() {
  if (!readout_) return;
  constexpr int kRows = 64;  // a step has few: its own, an evaluation's, a checkpoint's
  const auto step = static_cast<int64_t>(*readout_);
  const auto trouble = trouble_of([&] {
    for (size_t i = 0; i < curves_.size(); ++i) {
      const service::Series* const series = series_of(curves_[i]);
      if (!series || series->values_per_point() == 1) continue;
      int n = 0;
      curves_[i].reader->read_from_step(step, [&](const service::MetricsRow& row) {
        if (row.step != step || ++n > kRows) return false;
        if (row.has(curves_[i].key)) exact_values_[i] = row.value(curves_[i].key);
        return true;
      });
    }
  });
  if (trouble) say(*trouble);
  if (!exact_values_.empty()) show_readout();
}

void CurveChart::leave() {
  rest_timer_.stop();
  if (!readout_) return;
  readout_.reset();
  exact_values_.clear();
  show_readout();
}

void CurveChart::zoom_to(double first, double last) {
  const auto full = full_range();
  if (!full) return;
  constexpr double kLeast = 4;  // steps
  if (first > last) std::swap(first, last);
  const double width = std::clamp(last - first, std::min(kLeast, full->last - full->first),
                                  full->last - full->first);
  const double begin = std::clamp((first + last - width) / 2, full->first,
                                  std::max(full->first, full->last - width));
  if (width >= full->last - full->first) return reset_zoom();
  zoom_ = {begin, begin + width};
  if (readout_ && (*readout_ < begin || *readout_ > begin + width)) leave();
  redraw();
}

void CurveChart::zoom(double centre, double factor) {
  const auto full = full_range();
  if (!full) return;
  const double first = zoom_ ? zoom_->first : full->first;
  const double last = zoom_ ? zoom_->second : full->last;
  const double at = std::clamp(centre, first, last);
  zoom_to(at - (at - first) * factor, at + (last - at) * factor);
}

void CurveChart::reset_zoom() {
  if (!zoom_) return;
  zoom_.reset();
  exact_.clear();
  exact_timer_.stop();
  redraw();
}

void CurveChart::want_exact() {
  if (!zoom_) return;
  const double width = zoom_->second - zoom_->first;
  std::map<const service::MetricsReader*, std::vector<std::string>> wanted;
  for (const ChartCurve& curve : curves_)
    if (const auto* const series = series_of(curve); series && series->values_per_point() > 1)
      wanted[curve.reader].push_back(curve.key);
  for (const auto& [reader, keys] : wanted) {
    if (const auto known = exact_.find(reader); known != exact_.end()) {
      const auto first = static_cast<double>(known->second->first_step());
      const auto last = static_cast<double>(known->second->last_step());
      const bool has_it = first <= std::max(0.0, zoom_->first) && last >= zoom_->second;
      // One that was cut is read again for a narrower range only.
      if (has_it && (!known->second->is_cut() || 2 * width >= 0.9 * (last - first))) continue;
    }
    exact_.erase(reader);
    // Some more at both sides, for the next turn of the wheel.
    const auto first = static_cast<int64_t>(std::floor(zoom_->first - width / 2));
    const auto last = static_cast<int64_t>(std::ceil(zoom_->second + width / 2));
    const double n_rows = static_cast<double>(reader->n_rows()) * 2 * width /
                          static_cast<double>(std::max<int64_t>(1, reader->n_steps()));
    if (n_rows > static_cast<double>(ExactRange::kRows_max)) continue;
    exact_[reader] = std::make_unique<ExactRange>(*reader, keys, std::max<int64_t>(0, first), last);
    exact_timer_.start();
  }
}

void CurveChart::read_exact() {
  for (auto it = exact_.begin(); it != exact_.end(); ++it) {
    if (it->second->is_done()) continue;
    if (const auto trouble = trouble_of([&] { it->second->advance(); })) {
      exact_.erase(it);
      exact_timer_.stop();
      return say(*trouble);
    }
    return;  // one turn of reading a turn of the event loop
  }
  exact_timer_.stop();
  redraw();
}

}  // namespace ferry::gui
