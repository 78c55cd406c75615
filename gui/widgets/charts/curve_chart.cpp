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
#include <QStyleOptionToolButton>
#include <QStylePainter>
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
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

using service::SeriesPoint;

constexpr int kDrawMs = 1000;
constexpr int kRestMs = 80;
constexpr size_t kSmoothParts = 400;  ///< of a smoothed line: the values behind it have it all
constexpr double kClipShare = 0.99;

/** A button with a menu whose text is mark enough: the style draws no arrow beside it. */
class MarkButton : public QToolButton {
 protected:
  void paintEvent(QPaintEvent* event) override {
    Q_UNUSED(event);
    QStylePainter painter(this);
    QStyleOptionToolButton option;
    initStyleOption(&option);
    option.features &= ~QStyleOptionToolButton::HasMenu;
    painter.drawComplexControl(QStyle::CC_ToolButton, option);
  }
};

}  // namespace

CurveChart::CurveChart(const QString& title, ValueUnit unit, QWidget* parent)
    : QFrame(parent), title_(title), unit_(unit), shown_(std::make_unique<PlotRange>()) {
  setFrameShape(QFrame::StyledPanel);
  setBackgroundRole(QPalette::Base);
  setAutoFillBackground(true);
  heading_ = new TextLabel(title);
  heading_->setFont(bold_font(font()));
  heading_->setForegroundRole(QPalette::Text);
  where_ = new TextLabel;
  where_->setObjectName("readout_step");
  where_->setForegroundRole(QPalette::PlaceholderText);
  legend_ = new CurveLegend;
  legend_->setObjectName("legend");
  note_ = new TextLabel;
  note_->setObjectName("note");
  note_->setWordWrap(true);
  note_->setVisible(false);
  note_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  quiet_ = new TextLabel;
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
  menu_button_ = new MarkButton;
  menu_button_->setObjectName("chart_menu");
  menu_button_->setText(QStringLiteral("⋮"));
  menu_button_->setAutoRaise(true);
  menu_button_->setPopupMode(QToolButton::InstantPopup);
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

double CurveChart::now_of(const ChartCurve& curve) const {
  // All pages show the same loss: the mean of the last steps, as the log has it. One step's is
  // noise.
  const double mean = curve.key == "loss" ? curve.reader->mean_loss() : std::nan("");
  return std::isfinite(mean) ? mean : series_of(curve)->last();
}

void CurveChart::show_legend() {
  std::vector<LegendEntry> entries;
  for (size_t i = 0; i < curves_.size(); ++i) {
    const service::Series* const series = series_of(curves_[i]);
    if (!series || series->n_values() == 0) continue;
    entries.push_back(
        {style_of(i), tr("%1 %2", "name and value of a curve")
                          .arg(curves_[i].name, value_text(now_of(curves_[i]), unit_))});
  }
  legend_->show_entries(std::move(entries));
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
