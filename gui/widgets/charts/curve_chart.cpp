#include "gui/widgets/charts/curve_chart.h"

#include <QAction>
#include <QComboBox>
#include <QFileDialog>
#include <QHeaderView>
#include <QLabel>
#include <QLocale>
#include <QMenu>
#include <QSaveFile>
#include <QStackedLayout>
#include <QSvgGenerator>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <set>

#include "gui/models/text.h"
#include "gui/widgets/charts/curve_plot.h"
#include "gui/widgets/charts/curve_style.h"

namespace ferry::gui {

namespace {

using service::SeriesPoint;

constexpr int kDrawMs = 1000;
constexpr int kRestMs = 80;
constexpr size_t kSmoothParts = 400;  ///< of a smoothed line: the values behind it have it all
constexpr double kClipShare = 0.99;
constexpr QSize kPictureSize{1200, 680};

QString step_text(double step) {
  return QLocale().toString(static_cast<qlonglong>(std::llround(step)));
}

QFont bold(QFont font) {
  font.setBold(true);
  return font;
}

}  // namespace

CurveChart::CurveChart(const QString& title, ValueUnit unit, QWidget* parent)
    : QFrame(parent), title_(title), unit_(unit), shown_(std::make_unique<PlotRange>()) {
  setFrameShape(QFrame::StyledPanel);
  setBackgroundRole(QPalette::Base);
  setAutoFillBackground(true);
  heading_ = new QLabel(title);
  heading_->setFont(bold(font()));
  heading_->setForegroundRole(QPalette::Text);
  where_ = new QLabel;
  where_->setObjectName("readout_step");
  where_->setForegroundRole(QPalette::PlaceholderText);
  legend_ = new CurveLegend;
  legend_->setObjectName("legend");
  note_ = new QLabel;
  note_->setObjectName("note");
  note_->setWordWrap(true);
  note_->setVisible(false);
  note_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  quiet_ = new QLabel;
  quiet_->setWordWrap(true);
  quiet_->setVisible(false);
  quiet_->setForegroundRole(QPalette::PlaceholderText);
  quiet_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  plot_ = new CurvePlot;
  plot_->setObjectName("plot");
  plot_->set_summary([this] { return summary(); });
  make_menu();

  auto* const body = new QWidget;
  stack_ = new QStackedLayout(body);
  stack_->addWidget(plot_);
  auto* const head = new QHBoxLayout;
  head->addWidget(heading_);
  head->addStretch(1);
  head->addWidget(where_);
  head->addWidget(menu_button_);
  auto* const column = new QVBoxLayout(this);
  const int margin = style()->pixelMetric(QStyle::PM_LayoutHorizontalSpacing) > 0
                         ? style()->pixelMetric(QStyle::PM_LayoutHorizontalSpacing)
                         : 6;
  column->setContentsMargins(margin + 2, margin, margin, margin);
  column->setSpacing(2);
  column->addLayout(head);
  column->addWidget(legend_);
  column->addWidget(body, 1);
  column->addWidget(note_);
  column->addWidget(quiet_);

  draw_timer_.setSingleShot(true);
  rest_timer_.setSingleShot(true);
  rest_timer_.setInterval(kRestMs);
  exact_timer_.setInterval(0);
  connect(&draw_timer_, &QTimer::timeout, this, &CurveChart::redraw);
  connect(&rest_timer_, &QTimer::timeout, this, &CurveChart::read_exact_values);
  connect(&exact_timer_, &QTimer::timeout, this, &CurveChart::read_exact);
  connect(plot_, &CurvePlot::zoom_wanted, this, &CurveChart::zoom);
  connect(plot_, &CurvePlot::range_wanted, this, &CurveChart::zoom_to);
  connect(plot_, &CurvePlot::reset_wanted, this, &CurveChart::reset_zoom);
  connect(plot_, &CurvePlot::pointed, this, &CurveChart::point_at);
  connect(plot_, &CurvePlot::left, this, &CurveChart::leave);
  connect(plot_, &CurvePlot::readout_step_wanted, this, &CurveChart::move_readout);
  connect(&table_, &MetricsTable::trouble_changed, this, &CurveChart::say);
  connect(&csv_, &CsvExport::ended, this, [this](const QString& file, const QString& trouble) {
    done_ = trouble.isEmpty() ? tr("Written: %1").arg(file) : QString();
    say(trouble);
    emit exported(file, trouble);
  });
  set_title(title);
}

CurveChart::~CurveChart() = default;

void CurveChart::make_menu() {
  menu_button_ = new QToolButton;
  menu_button_->setObjectName("chart_menu");
  menu_button_->setText(QStringLiteral("⋮"));
  menu_button_->setAutoRaise(true);
  menu_button_->setPopupMode(QToolButton::InstantPopup);
  menu_button_->setStyleSheet("QToolButton::menu-indicator { image: none; }");
  menu_button_->setToolTip(tr("Axis, zoom, table, export"));
  auto* const menu = new QMenu(menu_button_);
  const auto checkable = [&](const QString& text, const char* name) {
    QAction* const action = menu->addAction(text);
    action->setCheckable(true);
    action->setObjectName(name);
    return action;
  };
  log_action_ = checkable(tr("&Logarithmic axis"), "log_axis");
  connect(log_action_, &QAction::toggled, this, &CurveChart::set_log);
  clip_action_ = checkable(tr("&Clip to 99 % of the values"), "clip");
  connect(clip_action_, &QAction::toggled, this, &CurveChart::set_clipped);
  table_action_ = checkable(tr("Show as &table"), "as_table");
  connect(table_action_, &QAction::toggled, this, &CurveChart::set_table_shown);
  menu->addSeparator();
  const auto centre = [this] { return readout_.value_or((shown_->first + shown_->last) / 2); };
  menu->addAction(tr("Zoom &in"), this, [this, centre] { zoom(centre(), 0.5); });
  menu->addAction(tr("Zoom &out"), this, [this, centre] { zoom(centre(), 2); });
  menu->addAction(tr("&Whole run"), this, &CurveChart::reset_zoom)->setObjectName("reset_zoom");
  menu->addSeparator();
  menu->addAction(tr("Export as &PNG…"), this, [this] { ask_for_file("png"); });
  menu->addAction(tr("Export as &SVG…"), this, [this] { ask_for_file("svg"); });
  menu->addAction(tr("&Export the values as CSV…"), this, [this] { ask_for_file("csv"); });
  menu_button_->setMenu(menu);
}

void CurveChart::set_title(const QString& title) {
  title_ = title;
  heading_->setText(title);
  setAccessibleName(title);
  plot_->setAccessibleName(tr("%1, chart").arg(title));
  menu_button_->setAccessibleName(tr("%1: menu of the chart").arg(title));
}

void CurveChart::set_unit(ValueUnit unit) {
  unit_ = unit;
  update_data();
}

void CurveChart::set_curves(std::vector<ChartCurve> curves) {
  curves_ = std::move(curves);
  exact_.clear();
  exact_timer_.stop();
  rest_timer_.stop();
  readout_.reset();
  readout_text_.clear();
  trouble_.clear();
  done_.clear();
  if (is_table_shown()) fill_table();
  drawn_.invalidate();
  // A reader may be gone: nothing of it is looked at again.
  if (curves_.empty()) table_.show(nullptr, {});
  update_data();
}

void CurveChart::set_legend_shown(bool shown) {
  legend_->setVisible(shown);
}

int CurveChart::style_of(size_t curve) const {
  return curves_[curve].style >= 0 ? curves_[curve].style : static_cast<int>(curve) % kCurveStyles;
}

const service::Series* CurveChart::series_of(const ChartCurve& curve) const {
  return curve.reader ? curve.reader->find(curve.key) : nullptr;
}

CurveChart::Points CurveChart::points_of(const ChartCurve& curve) const {
  const service::Series* const series = series_of(curve);
  if (!series) return {};
  if (series->values_per_point() == 1) return series->points();
  if (const auto exact = exact_.find(curve.reader);
      exact != exact_.end() && exact->second->is_done() && !exact->second->is_cut())
    if (const service::Series* const values = exact->second->find(curve.key))
      return values->points();
  return series->points();
}

std::optional<PlotRange> CurveChart::full_range() const {
  std::optional<PlotRange> all;
  for (const ChartCurve& curve : curves_) {
    const service::Series* const series = series_of(curve);
    if (!series || series->points().empty()) continue;
    const auto first = static_cast<double>(series->points().front().first_step);
    const auto last = static_cast<double>(series->points().back().last_step);
    if (!all) all = PlotRange{first, last};
    all->first = std::min(all->first, first);
    all->last = std::max(all->last, last);
  }
  if (all && all->first == all->last) all = PlotRange{all->first - 1, all->last + 1};
  return all;
}

void CurveChart::update_data() {
  if (!isVisible()) {
    is_dirty_ = true;
    return;
  }
  if (draw_timer_.isActive()) return;
  const qint64 since = drawn_.isValid() ? drawn_.elapsed() : kDrawMs;
  draw_timer_.start(static_cast<int>(std::clamp<qint64>(kDrawMs - since, 0, kDrawMs)));
}

void CurveChart::draw_curve(size_t number, PlotPicture& picture) {
  const ChartCurve& curve = curves_[number];
  const Points points = visible_points(points_of(curve), picture.x.first, picture.x.last);
  if (points.empty()) return;
  const bool is_smoothed = curve.is_smoothed && smoothing_ > 0;
  picture.curves.push_back({.style = style_of(number),
                            .is_faint = is_smoothed,
                            .has_markers = curve.has_markers,
                            .line = raw_line(points, is_log_)});
  if (!is_smoothed) return;
  Smoother smoother(smoothing_);
  for (const SeriesPoint& point : series_of(curve)->points()) {
    if (point.last_step >= points.front().first_step) break;
    smoother.add(point);
  }
  picture.curves.push_back({.style = style_of(number),
                            .line = reduced(smooth_line(points, smoother, is_log_), kSmoothParts)});
}

void CurveChart::choose_values(PlotPicture& picture) {
  std::optional<Extent> all;
  double clip = -std::numeric_limits<double>::infinity();
  bool has_hidden = false;
  for (const ChartCurve& curve : curves_) {
    Points points = visible_points(points_of(curve), picture.x.first, picture.x.last);
    // Neighbours beyond the edges are drawn, and do not count unless there is nothing else.
    if (points.size() > 2 && static_cast<double>(points.front().last_step) < picture.x.first)
      points = points.subspan(1);
    if (points.size() > 2 && static_cast<double>(points.back().first_step) > picture.x.last)
      points = points.first(points.size() - 1);
    const auto extent = extent_of(points, is_log_);
    if (const auto any = extent_of(points); is_log_ && any && any->min <= 0) has_hidden = true;
    if (!extent) continue;
    if (!all) all = extent;
    all->min = std::min(all->min, extent->min);
    all->max = std::max(all->max, extent->max);
    if (is_clipped_) clip = std::max(clip, percentile(points, kClipShare));
  }
  clip_note_.clear();
  if (has_hidden) clip_note_ = tr("Values of zero and below have no place on a logarithmic axis.");
  if (!all) return;
  if (is_clipped_ && std::isfinite(clip) && clip < all->max && clip > all->min) {
    clip_note_ = tr("The axis ends at 99 % of the values; the greatest is %1.")
                     .arg(value_text(all->max, unit_));
    all->max = clip;
  }
  constexpr double kRoom = 0.06;
  if (is_log_) {
    const double size = std::max(std::log10(all->max / all->min), 0.1);
    picture.y = {all->min * std::pow(10, -kRoom * size), all->max * std::pow(10, kRoom * size)};
    return;
  }
  if (unit_ == ValueUnit::bytes) all->min = std::min(0.0, all->min);
  const double size = all->max - all->min;
  // Half of each: the size of the largest numbers is infinite.
  const double room = size > 0 && std::isfinite(size) ? kRoom * size
                      : all->max != 0                 ? 0.1 * std::abs(all->max)
                                                      : 1;
  picture.y = {all->min - (unit_ == ValueUnit::bytes ? 0 : room), all->max + room};
}

void CurveChart::redraw() {
  is_dirty_ = false;
  drawn_.start();
  PlotPicture picture{.is_log = is_log_, .unit = unit_};
  const auto full = full_range();
  if (!full) {
    picture.empty_text = tr("No values yet");
    if (is_log_) picture.y = {0.1, 10};
  } else {
    picture.x = zoom_ ? PlotRange{zoom_->first, zoom_->second} : *full;
    // Room for the markers of the last values.
    if (!zoom_) picture.x.last += 0.01 * (full->last - full->first);
    want_exact();  // what is known of it may have been given up
    for (size_t i = 0; i < curves_.size(); ++i)
      draw_curve(i, picture);
    choose_values(picture);
    if (is_log_ && picture.y.first <= 0) picture.y = {0.1, 10};
    std::set<int64_t> warned;
    for (const ChartCurve& curve : curves_)
      if (const auto step = first_nonfinite(points_of(curve))) warned.insert(*step);
    // One sign a chart: the note below counts the rest.
    if (!warned.empty() && static_cast<double>(*warned.begin()) >= picture.x.first &&
        static_cast<double>(*warned.begin()) <= picture.x.last)
      picture.warnings.push_back(static_cast<double>(*warned.begin()));
    // Lines may be drawn beyond faint ones: faint ones first.
    std::ranges::stable_sort(picture.curves, std::greater<>(), &PlotCurve::is_faint);
  }
  *shown_ = picture.x;
  plot_->show_picture(picture);
  if (is_table_shown()) table_.update();
  show_notes();
  show_readout();
}

void CurveChart::show_notes() {
  int64_t n_bad = 0;
  std::optional<int64_t> first;
  for (const ChartCurve& curve : curves_)
    if (const service::Series* const series = series_of(curve);
        series && series->n_nonfinite() > 0) {
      n_bad += series->n_nonfinite();
      if (const auto step = first_nonfinite(series->points()); step && (!first || *step < *first))
        first = step;
    }
  QStringList notes;
  if (!trouble_.isEmpty()) notes << trouble_;
  if (first)
    notes << tr("! Not finite: %1, the first at step %2.", "a number of values")
                 .arg(QLocale().toString(static_cast<qlonglong>(n_bad)),
                      step_text(static_cast<double>(*first)));
  QStringList quiet;
  if (!clip_note_.isEmpty()) quiet << clip_note_;
  if (!done_.isEmpty()) quiet << done_;
  quiet_->setText(quiet.join(' '));
  quiet_->setVisible(!quiet.isEmpty());
  const QString text = notes.join(' ');
  QPalette colours = palette();
  colours.setColor(QPalette::Text, warning_colour(palette()));
  note_->setForegroundRole(QPalette::Text);
  if (note_->palette() != colours) note_->setPalette(colours);
  note_->setText(text);
  note_->setVisible(!text.isEmpty());
}

QString CurveChart::note() const {
  return QStringList{note_->text(), quiet_->text()}.join(' ').trimmed();
}

void CurveChart::say(const QString& trouble) {
  trouble_ = trouble;
  show_notes();
}

void CurveChart::show_legend() {
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < curves_.size(); ++i) {
    const service::Series* const series = series_of(curves_[i]);
    if (!series || series->n_values() == 0) continue;
    entries.push_back({style_of(i), tr("%1 %2", "name and value of a curve")
                                        .arg(curves_[i].name, value_text(series->last(), unit_))});
  }
  legend_->show_entries(std::move(entries));
}

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

void CurveChart::set_smoothing(double weight) {
  if (weight == smoothing_) return;
  smoothing_ = weight;
  drawn_.invalidate();
  update_data();
}

void CurveChart::set_log(bool is_log) {
  if (is_log == is_log_) return;
  is_log_ = is_log;
  log_action_->setChecked(is_log);
  redraw();
}

void CurveChart::set_clipped(bool is_clipped) {
  if (is_clipped == is_clipped_) return;
  is_clipped_ = is_clipped;
  clip_action_->setChecked(is_clipped);
  redraw();
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

bool CurveChart::is_table_shown() const {
  return table_page_ && stack_->currentWidget() == table_page_;
}

void CurveChart::set_table_shown(bool shown) {
  table_action_->setChecked(shown);
  if (!table_page_ && shown) {
    table_page_ = new QWidget;
    auto* const column = new QVBoxLayout(table_page_);
    column->setContentsMargins({});
    table_run_ = new QComboBox;
    table_run_->setAccessibleName(tr("Run of the table"));
    table_view_ = new QTableView;
    table_view_->setObjectName("table");
    table_view_->setAccessibleName(tr("%1, table").arg(title_));
    table_view_->setModel(&table_);
    table_view_->setSelectionBehavior(QAbstractItemView::SelectRows);
    table_view_->setFrameShape(QFrame::NoFrame);
    table_view_->verticalHeader()->hide();
    table_view_->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    table_view_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 4);
    table_view_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    column->addWidget(table_run_);
    column->addWidget(table_view_, 1);
    stack_->addWidget(table_page_);
    connect(table_run_, &QComboBox::activated, this, &CurveChart::fill_table);
  }
  if (!table_page_) return;
  stack_->setCurrentWidget(shown ? table_page_ : static_cast<QWidget*>(plot_));
  if (!shown) return table_.show(nullptr, {});
  leave();
  fill_table();
}

void CurveChart::fill_table() {
  std::vector<const service::MetricsReader*> readers;
  QStringList names;
  for (const ChartCurve& curve : curves_)
    if (curve.reader && std::ranges::find(readers, curve.reader) == readers.end()) {
      readers.push_back(curve.reader);
      names << curve.name;
    }
  QStringList shown;
  for (int i = 0; i < table_run_->count(); ++i)
    shown << table_run_->itemText(i);
  if (shown != names) {
    table_run_->clear();
    table_run_->addItems(names);
  }
  table_run_->setVisible(readers.size() > 1);
  const int chosen = std::max(0, table_run_->currentIndex());
  if (readers.empty()) return table_.show(nullptr, {});
  const auto* const reader = readers[static_cast<size_t>(chosen)];
  std::vector<MetricsColumn> columns;
  for (const ChartCurve& curve : curves_)
    if (curve.reader == reader)
      columns.push_back({curve.key, readers.size() > 1 ? title_ : curve.name, unit_});
  table_.show(reader, std::move(columns));
}

void CurveChart::paint_all(QPaintDevice& device, QSize size) {
  plot_->show_readout(std::nullopt, {});
  show_legend();
  QCPPainter painter(&device);
  const QPalette colours = palette();
  painter.fillRect(QRect({}, size), colours.color(QPalette::Base));
  const QFontMetricsF metrics(font());
  const double margin = metrics.height();
  const QFont title_font = bold(font());
  painter.setFont(title_font);
  painter.setPen(colours.color(QPalette::Text));
  QRectF where(margin, margin / 2, size.width() - 2 * margin, size.height() - margin);
  painter.drawText(where, Qt::AlignTop | Qt::AlignLeft, title_);
  where.setTop(where.top() + 1.4 * metrics.height());
  where.setTop(where.top() + draw_legend(&painter, legend_->entries(), where, font(), colours) +
               metrics.height() / 2);
  painter.translate(where.topLeft());
  plot_->toPainter(&painter, static_cast<int>(where.width()), static_cast<int>(where.height()));
  painter.end();
  show_readout();
}

void CurveChart::export_to(const QString& file) {
  done_.clear();
  say({});
  if (file.endsWith(QLatin1String(".csv"), Qt::CaseInsensitive)) {
    std::vector<CsvRun> runs;
    std::vector<std::string> keys;
    for (const ChartCurve& curve : curves_) {
      if (std::ranges::find(runs, curve.run, &CsvRun::run) == runs.end())
        runs.push_back({curve.name, curve.run});
      if (std::ranges::find(keys, curve.key) == keys.end()) keys.push_back(curve.key);
    }
    return csv_.start(std::move(runs), std::move(keys), file);
  }
  QSaveFile target(file);
  bool is_written = target.open(QIODevice::WriteOnly);
  if (is_written && file.endsWith(QLatin1String(".svg"), Qt::CaseInsensitive)) {
    QSvgGenerator svg;
    svg.setOutputDevice(&target);
    svg.setSize(kPictureSize);
    svg.setResolution(logicalDpiX());  // texts as large as they were measured
    svg.setViewBox(QRect({}, kPictureSize));
    svg.setTitle(title_);
    svg.setDescription(summary());
    paint_all(svg, kPictureSize);
  } else if (is_written) {
    constexpr int kScale = 2;
    QImage image(kPictureSize * kScale, QImage::Format_RGB32);
    image.setDevicePixelRatio(kScale);
    image.setText("Description", summary());
    paint_all(image, kPictureSize);
    is_written = image.save(&target, "PNG");
  }
  is_written = is_written && target.commit();
  const QString trouble =
      is_written ? QString() : tr("%1 cannot be written: %2").arg(file, target.errorString());
  done_ = is_written ? tr("Written: %1").arg(file) : QString();
  say(trouble);
  emit exported(file, trouble);
}

void CurveChart::ask_for_file(const QString& kind) {
  auto* const dialog = new QFileDialog(this, tr("Export %1").arg(title_));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(kind);
  dialog->setNameFilter(QStringLiteral("%1 (*.%2)").arg(kind.toUpper(), kind));
  QString name = title_.toLower();
  name.replace('/', '-').replace(' ', '-');
  dialog->selectFile(name + '.' + kind);
  connect(dialog, &QFileDialog::fileSelected, this, &CurveChart::export_to);
  dialog->open();
}

QString CurveChart::summary() const {
  if (curves_.empty()) return tr("%1: no values yet").arg(title_);
  QStringList words;
  for (const ChartCurve& curve : curves_)
    words << curve_in_words(curve.name, series_of(curve), unit_);
  return words.join(QStringLiteral(". "));
}

size_t CurveChart::n_points_drawn() const {
  return plot_->n_points_drawn();
}

void CurveChart::showEvent(QShowEvent* event) {
  QFrame::showEvent(event);
  if (is_dirty_) draw_timer_.start(0);
}

void CurveChart::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && note_) show_notes();
}

}  // namespace ferry::gui
