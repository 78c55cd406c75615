#include "gui/widgets/charts/curve_style.h"

#include <QPainterPath>
#include <array>

#include "gui/widgets/look.h"

namespace ferry::gui {

QColor curve_colour(int style, const QPalette& palette) {
  static constexpr std::array<QRgb, kCurveStyles> kOn_light = {0xff005f9e, 0xffa84300, 0xff00694a,
                                                               0xff8a3a78, 0xff5b4b00, 0xff3c4048};
  static constexpr std::array<QRgb, kCurveStyles> kOn_dark = {0xff56b4e9, 0xfff0a030, 0xff2fc79b,
                                                              0xffe59bc8, 0xfff0e442, 0xffd0d4da};
  const auto at = static_cast<size_t>(style) % kCurveStyles;
  return QColor::fromRgb(has_dark_base(palette) ? kOn_dark[at] : kOn_light[at]);
}

QColor warning_colour(const QPalette& palette) {
  return QColor::fromRgb(has_dark_base(palette) ? 0xffff9d6e : 0xffa83200);
}

QPen curve_pen(int style, const QPalette& palette, double width) {
  QPen pen(curve_colour(style, palette), width);
  static const std::array<QList<qreal>, kCurveStyles> kDashes = {
      QList<qreal>{}, {5, 2.5}, {1.5, 2}, {6, 2, 1.5, 2}, {9, 3}, {6, 2, 1.5, 2, 1.5, 2}};
  const auto& dashes = kDashes[static_cast<size_t>(style) % kCurveStyles];
  if (!dashes.isEmpty()) pen.setDashPattern(dashes);
  pen.setCapStyle(Qt::FlatCap);
  pen.setJoinStyle(Qt::RoundJoin);
  return pen;
}

Marker curve_marker(int style) {
  return static_cast<Marker>(style % kCurveStyles);
}

void draw_marker(QPainter& painter, Marker marker, QPointF centre, double size) {
  const double r = size / 2;
  const auto at = [&](double x, double y) { return centre + QPointF(x * r, y * r); };
  switch (marker) {
    case Marker::circle:
      painter.drawEllipse(centre, r, r);
      break;
    case Marker::square:
      painter.drawRect(QRectF(at(-0.9, -0.9), at(0.9, 0.9)));
      break;
    case Marker::triangle:
      painter.drawPolygon(QPolygonF({at(0, -1.1), at(1.1, 0.9), at(-1.1, 0.9)}));
      break;
    case Marker::diamond:
      painter.drawPolygon(QPolygonF({at(0, -1.2), at(1.2, 0), at(0, 1.2), at(-1.2, 0)}));
      break;
    case Marker::cross:
      painter.drawLine(at(-1, -1), at(1, 1));
      painter.drawLine(at(-1, 1), at(1, -1));
      break;
    case Marker::plus:
      painter.drawLine(at(-1.1, 0), at(1.1, 0));
      painter.drawLine(at(0, -1.1), at(0, 1.1));
      break;
  }
}

void draw_sample(QPainter& painter, const QRectF& where, int style, const QPalette& palette) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(curve_pen(style, palette, 2));
  painter.drawLine(QPointF(where.left(), where.center().y()),
                   QPointF(where.right(), where.center().y()));
  painter.setPen(QPen(curve_colour(style, palette), 1.5));
  painter.setBrush(palette.color(QPalette::Base));
  draw_marker(painter, curve_marker(style), where.center(), where.height() * 0.5);
  painter.restore();
}

CurveSample::CurveSample(int style, QWidget* parent) : QWidget(parent), style_(style) {
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void CurveSample::set_style(int style) {
  style_ = style;
  update();
}

QSize CurveSample::sizeHint() const {
  return {4 * fontMetrics().averageCharWidth(), fontMetrics().height()};
}

void CurveSample::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  draw_sample(painter, QRectF(rect()).adjusted(1, 1, -1, -1), style_, palette());
}

}  // namespace ferry::gui
