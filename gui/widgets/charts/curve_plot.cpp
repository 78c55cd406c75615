#include "gui/widgets/charts/curve_plot.h"

#include <QAccessible>
#include <QAccessibleWidget>
#include <cmath>

#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

constexpr double kZoomStep = 0.8;
constexpr int kMarkerPoints = 60;  ///< a curve with more has them at some of its points alone
constexpr int kFewMarkers = 9;
constexpr double kCalm = 15;  ///< times the axis that a line goes up and down

double rise_of(const std::vector<CurvePoint>& line) {
  double sum = 0;
  for (size_t i = 1; i < line.size(); ++i)
    if (const double by = std::abs(line[i].y - line[i - 1].y); std::isfinite(by)) sum += by;
  return sum;
}

/** QCustomPlot has no accessibility of its own. */
class CurvePlotAccessible : public QAccessibleWidget {
 public:
  explicit CurvePlotAccessible(CurvePlot* plot) : QAccessibleWidget(plot, QAccessible::Chart) {}

  QString text(QAccessible::Text kind) const override {
    const auto* const plot = static_cast<CurvePlot*>(widget());
    if (kind == QAccessible::Description) return plot->summary();
    if (kind == QAccessible::Value) return plot->readout_text();
    return QAccessibleWidget::text(kind);
  }
};

QAccessibleInterface* make_accessible(const QString&, QObject* object) {
  auto* const plot = qobject_cast<CurvePlot*>(object);
  return plot ? new CurvePlotAccessible(plot) : nullptr;
}

class ValueTicker : public QCPAxisTicker {
 public:
  explicit ValueTicker(ValueUnit unit) : unit_(unit) { setTickCount(4); }

 protected:
  double getTickStep(const QCPRange& range) override {
    if (unit_ != ValueUnit::bytes) return QCPAxisTicker::getTickStep(range);
    double part = 1;
    while (range.size() / part >= 2048)
      part *= 1024;
    return part * QCPAxisTicker::getTickStep(QCPRange(range.lower / part, range.upper / part));
  }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override {
    const double size = step_;
    return tick_text(std::abs(tick) < size * 1e-9 ? 0 : tick, unit_);
  }
  QVector<double> createTickVector(double step, const QCPRange& range) override {
    step_ = step;
    return QCPAxisTicker::createTickVector(step, range);
  }

 private:
  ValueUnit unit_;
  double step_ = 0;
};

/** Ticks at powers of ten; where few of them are in range, between them, too. */
class LogTicker : public QCPAxisTickerLog {
 public:
  explicit LogTicker(ValueUnit unit) : unit_(unit) {}

 protected:
  QVector<double> createTickVector(double step, const QCPRange& range) override {
    const double decades = std::log10(range.upper / range.lower);
    if (!(range.lower > 0) || !(decades < 3))
      return QCPAxisTickerLog::createTickVector(step, range);
    if (decades < 0.3) return QCPAxisTicker::createTickVector(range.size() / 4, range);
    const QVector<double> parts =
        decades < 1 ? QVector<double>{1, 1.5, 2, 3, 5, 7} : QVector<double>{1, 2, 5};
    QVector<double> ticks;
    const double last = std::ceil(std::log10(range.upper));
    for (double power = std::floor(std::log10(range.lower)); power <= last; ++power)
      for (const double part : parts)
        if (const double tick = part * std::pow(10, power); range.contains(tick)) ticks << tick;
    return ticks;
  }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override {
    return tick_text(tick, unit_);
  }

 private:
  ValueUnit unit_;
};

/** Whole steps, with the language's separators. */
class StepTicker : public QCPAxisTicker {
 public:
  StepTicker() { setTickCount(5); }

 protected:
  double getTickStep(const QCPRange& range) override {
    const double step = QCPAxisTicker::getTickStep(range);
    // 2.5 is a clean step, and no whole one.
    return step == std::round(step) ? std::max(1.0, step) : std::max(1.0, std::floor(step));
  }
  int getSubTickCount(double) override { return 0; }
  QString getTickLabel(double tick, const QLocale&, QChar, int) override {
    return QLocale().toString(static_cast<qlonglong>(std::llround(tick)));
  }
};

QCPScatterStyle marker_style(int style, const QPalette& palette) {
  constexpr QCPScatterStyle::ScatterShape kShapes[kCurveStyles] = {
      QCPScatterStyle::ssCircle,  QCPScatterStyle::ssSquare, QCPScatterStyle::ssTriangle,
      QCPScatterStyle::ssDiamond, QCPScatterStyle::ssCross,  QCPScatterStyle::ssPlus};
  return {kShapes[style % kCurveStyles], QPen(curve_colour(style, palette), 1.5),
          palette.color(QPalette::Base), 7};
}

}  // namespace

CurvePlot::CurvePlot(QWidget* parent) : QCustomPlot(parent) {
  static const bool is_installed = (QAccessible::installFactory(make_accessible), true);
  Q_UNUSED(is_installed);
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAutoAddPlottableToLegend(false);
  setPlottingHints(QCP::phFastPolylines);
  setNoAntialiasingOnDrag(true);
  setMinimumHeight(7 * fontMetrics().height());
  xAxis->setTicker(QSharedPointer<QCPAxisTicker>(new StepTicker));
  xAxis->setTickLabelFont(font());
  yAxis->setTickLabelFont(font());
  set_scale(false, ValueUnit::number);
  axisRect()->setMinimumMargins(
      QMargins(0, fontMetrics().height() / 2 + 2, fontMetrics().height(), 0));
  plotLayout()->setMargins({});

  cursor_ = new QCPItemStraightLine(this);
  cursor_->setVisible(false);
  cursor_->setLayer("overlay");
  empty_ = new QCPItemText(this);
  empty_->position->setType(QCPItemPosition::ptAxisRectRatio);
  empty_->position->setCoords(0.5, 0.5);
  empty_->setVisible(false);
  restyle();
}

CurvePlot::~CurvePlot() = default;

QCPGraph& CurvePlot::graph_at(int number) {
  while (static_cast<int>(graphs_.size()) <= number)
    graphs_.push_back(addGraph());
  return *graphs_[static_cast<size_t>(number)];
}

void CurvePlot::set_scale(bool is_log, ValueUnit unit) {
  yAxis->setScaleType(is_log ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  yAxis->setTicker(is_log ? QSharedPointer<QCPAxisTicker>(new LogTicker(unit))
                          : QSharedPointer<QCPAxisTicker>(new ValueTicker(unit)));
}

void CurvePlot::show_picture(const PlotPicture& picture) {
  if (picture.is_log != picture_.is_log || picture.unit != picture_.unit)
    set_scale(picture.is_log, picture.unit);
  picture_ = picture;
  n_points_ = 0;
  int n_graphs = 0;
  for (const PlotCurve& curve : picture_.curves) {
    QVector<QCPGraphData> data;
    data.reserve(static_cast<qsizetype>(curve.line.size()));
    for (const CurvePoint& point : curve.line)
      data.append({point.x, point.y});
    n_points_ += curve.line.size();
    QCPGraph& graph = graph_at(n_graphs++);
    graph.data()->set(data, /*alreadySorted=*/true);
    graph.setVisible(true);
    bool is_calm = true;
    if (curve.is_faint) {
      // A line of one pixel without smooth edges is the one that is drawn fast.
      QColor colour = curve_colour(curve.style, palette());
      colour.setAlphaF(0.3F);
      graph.setPen(QPen(colour, 1));
      graph.setAntialiased(false);
    } else {
      // Dashes of a line that goes up and down a lot cannot be told from it, and take long.
      is_calm = rise_of(curve.line) < kCalm * (picture_.y.last - picture_.y.first);
      const bool is_long = !is_calm && curve.line.size() > 1000;
      graph.setPen(is_calm ? curve_pen(curve.style, palette(), 2)
                           : QPen(curve_colour(curve.style, palette()), is_long ? 1 : 2));
      graph.setAntialiased(!is_long);
    }
    // Its markers tell a line without dashes from the others.
    if (curve.has_markers || (!is_calm && curve.style > 0)) {
      const int most = curve.has_markers ? kMarkerPoints : kFewMarkers;
      graph.setScatterStyle(marker_style(curve.style, palette()));
      graph.setScatterSkip(std::max(0, static_cast<int>(curve.line.size()) / most));
    } else {
      graph.setScatterStyle(QCPScatterStyle::ssNone);
    }
  }
  for (size_t i = static_cast<size_t>(n_graphs); i < graphs_.size(); ++i) {
    graphs_[i]->setVisible(false);
    graphs_[i]->data()->clear();
  }
  xAxis->setRange(picture_.x.first, picture_.x.last);
  yAxis->setRange(picture_.y.first, picture_.y.last);
  while (warnings_.size() < picture_.warnings.size()) {
    auto* const sign = new QCPItemText(this);
    sign->position->setTypeX(QCPItemPosition::ptPlotCoords);
    sign->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
    sign->setPositionAlignment(Qt::AlignHCenter | Qt::AlignBottom);
    sign->setText(QStringLiteral("!"));
    sign->setPadding({4, 0, 4, 0});
    warnings_.push_back(sign);
  }
  for (size_t i = 0; i < warnings_.size(); ++i) {
    warnings_[i]->setVisible(i < picture_.warnings.size());
    if (i < picture_.warnings.size()) warnings_[i]->position->setCoords(picture_.warnings[i], 0.98);
  }
  empty_->setText(picture_.empty_text);
  empty_->setVisible(!picture_.empty_text.isEmpty());
  restyle();
  replot();
}

void CurvePlot::show_readout(std::optional<double> step, const std::vector<Mark>& marks) {
  if (!step && !readout_) return;
  readout_ = step;
  cursor_->setVisible(step.has_value());
  if (step) {
    for (auto* const end : {cursor_->point1, cursor_->point2})
      end->setTypeY(QCPItemPosition::ptAxisRectRatio);
    cursor_->point1->setCoords(*step, 0);
    cursor_->point2->setCoords(*step, 1);
  }
  while (rings_.size() < marks.size()) {
    auto* const ring = new QCPItemEllipse(this);
    ring->setLayer("overlay");
    rings_.push_back(ring);
  }
  for (size_t i = 0; i < rings_.size(); ++i) {
    const bool is_shown = step && i < marks.size() && std::isfinite(marks[i].y);
    rings_[i]->setVisible(is_shown);
    if (!is_shown) continue;
    const QPointF centre(xAxis->coordToPixel(marks[i].x), yAxis->coordToPixel(marks[i].y));
    for (auto* const corner : {rings_[i]->topLeft, rings_[i]->bottomRight})
      corner->setType(QCPItemPosition::ptAbsolute);
    rings_[i]->topLeft->setPixelPosition(centre - QPointF(4, 4));
    rings_[i]->bottomRight->setPixelPosition(centre + QPointF(4, 4));
    rings_[i]->setPen(QPen(curve_colour(marks[i].style, palette()), 2));
    rings_[i]->setBrush(palette().color(QPalette::Base));
  }
  // The overlay is a layer of its own: the curves are not drawn again.
  layer("overlay")->replot();
}

void CurvePlot::set_readout_text(const QString& text) {
  if (text == readout_text_) return;
  readout_text_ = text;
  if (!hasFocus() || !QAccessible::isActive()) return;
  QAccessibleValueChangeEvent event(this, text);
  QAccessible::updateAccessibility(&event);
}

void CurvePlot::restyle() {
  const QPalette& colours = palette();
  const QColor text = colours.color(QPalette::Text);
  QColor grid = text;
  grid.setAlphaF(0.12F);
  setBackground(colours.color(QPalette::Base));
  for (QCPAxis* const axis : {xAxis, yAxis}) {
    axis->setTickLabelColor(colours.color(QPalette::PlaceholderText));
    axis->setBasePen(QPen(colours.color(QPalette::Mid), 1));
    axis->setTickPen(QPen(colours.color(QPalette::Mid), 1));
    axis->setSubTicks(false);
    axis->setTickLength(0, 4);
    axis->grid()->setPen(QPen(grid, 1));
    axis->grid()->setZeroLinePen(QPen(grid, 1));
    axis->setTickLabelFont(font());
  }
  cursor_->setPen(QPen(colours.color(QPalette::Mid), 1));
  empty_->setColor(colours.color(QPalette::PlaceholderText));
  empty_->setFont(font());
  for (QCPItemText* const sign : warnings_) {
    sign->setColor(warning_colour(colours));
    sign->setPen(QPen(warning_colour(colours), 1.5));
    sign->setBrush(colours.color(QPalette::Base));
    sign->setFont(bold_font(font()));
  }
}

void CurvePlot::resizeEvent(QResizeEvent*) {
  // A window has many charts: each is drawn in a turn of its own.
  setViewport(rect());
  replot(QCustomPlot::rpQueuedReplot);
}

void CurvePlot::paintEvent(QPaintEvent* event) {
  QCustomPlot::paintEvent(event);
  if (!hasFocus() && band_.isNull()) return;
  QPainter painter(this);
  if (!band_.isNull()) {
    QColor fill = palette().color(QPalette::Highlight);
    painter.setPen(fill);
    fill.setAlphaF(0.2F);
    painter.setBrush(fill);
    painter.drawRect(band_);
  }
  if (hasFocus()) {
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
    painter.drawRect(rect().adjusted(1, 1, -1, -1));
  }
}

void CurvePlot::changeEvent(QEvent* event) {
  QCustomPlot::changeEvent(event);
  if (!empty_) return;
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
    const PlotPicture same = picture_;
    show_picture(same);
  }
}

void CurvePlot::focusInEvent(QFocusEvent* event) {
  QCustomPlot::focusInEvent(event);
  update();
}

void CurvePlot::focusOutEvent(QFocusEvent* event) {
  QCustomPlot::focusOutEvent(event);
  update();
}

void CurvePlot::keyPressEvent(QKeyEvent* event) {
  constexpr int kFar = 10;
  const bool is_far = event->modifiers() & Qt::ControlModifier;
  const double centre = readout_.value_or(xAxis->range().center());
  switch (event->key()) {
    case Qt::Key_Left:
      emit readout_step_wanted(is_far ? -kFar : -1);
      return;
    case Qt::Key_Right:
      emit readout_step_wanted(is_far ? kFar : 1);
      return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
      emit zoom_wanted(centre, kZoomStep);
      return;
    case Qt::Key_Minus:
      emit zoom_wanted(centre, 1 / kZoomStep);
      return;
    case Qt::Key_Home:
      emit reset_wanted();
      return;
    case Qt::Key_Escape:
      if (!readout_) break;
      emit left();
      return;
    default:
      break;
  }
  event->ignore();
}

void CurvePlot::wheelEvent(QWheelEvent* event) {
  // Without Ctrl the wheel scrolls the page that the chart is on.
  if (!(event->modifiers() & Qt::ControlModifier)) return event->ignore();
  const double turns = event->angleDelta().y() / 120.0;
  emit zoom_wanted(xAxis->pixelToCoord(event->position().x()), std::pow(kZoomStep, turns));
  event->accept();
}

void CurvePlot::mousePressEvent(QMouseEvent* event) {
  setFocus(Qt::MouseFocusReason);
  if (event->button() == Qt::LeftButton && axisRect()->rect().contains(event->pos()))
    pressed_ = event->pos();
}

void CurvePlot::mouseMoveEvent(QMouseEvent* event) {
  const QRect area = axisRect()->rect();
  if (pressed_ && std::abs(event->pos().x() - pressed_->x()) >= QApplication::startDragDistance()) {
    const int end = qBound(area.left(), event->pos().x(), area.right());
    band_ = QRect(QPoint(std::min(pressed_->x(), end), area.top()),
                  QPoint(std::max(pressed_->x(), end), area.bottom()));
    update();
    return;
  }
  if (area.contains(event->pos()))
    emit pointed(xAxis->pixelToCoord(event->pos().x()));
  else
    emit left();
}

void CurvePlot::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  pressed_.reset();
  if (band_.isNull()) return;
  const QRect band = std::exchange(band_, QRect());
  update();
  emit range_wanted(xAxis->pixelToCoord(band.left()), xAxis->pixelToCoord(band.right()));
}

void CurvePlot::mouseDoubleClickEvent(QMouseEvent*) {
  pressed_.reset();
  band_ = QRect();
  emit reset_wanted();
}

void CurvePlot::leaveEvent(QEvent* event) {
  QCustomPlot::leaveEvent(event);
  emit left();
}

}  // namespace ferry::gui
