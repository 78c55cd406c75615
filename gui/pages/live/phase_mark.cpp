#include "gui/pages/live/phase_mark.h"

#include <QPainter>

#include "gui/widgets/curve_style.h"

namespace ferry::gui {

PhaseMark::PhaseMark(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void PhaseMark::show_kind(PhaseKind kind) {
  kind_ = kind;
  update();
}

QSize PhaseMark::sizeHint() const {
  const int size = fontMetrics().height();
  return {size, size};
}

void PhaseMark::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const double size = std::min(width(), height());
  const QRectF box(size * 0.15, (height() - size) / 2 + size * 0.15, size * 0.7, size * 0.7);
  const auto fill = [&](const QColor& colour) {
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
  };
  const auto line = [&](const QColor& colour) {
    painter.setPen(QPen(colour, size * 0.14, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.setBrush(Qt::NoBrush);
  };
  switch (kind_) {
    case PhaseKind::busy:  // a triangle: it runs
      fill(curve_colour(0, palette()));
      painter.drawPolygon(
          QPolygonF({box.topLeft(), QPointF(box.right(), box.center().y()), box.bottomLeft()}));
      break;
    case PhaseKind::waiting:  // two bars
      fill(curve_colour(1, palette()));
      painter.drawRect(QRectF(box.left(), box.top(), box.width() * 0.36, box.height()));
      painter.drawRect(
          QRectF(box.right() - box.width() * 0.36, box.top(), box.width() * 0.36, box.height()));
      break;
    case PhaseKind::good:  // a tick
      line(curve_colour(2, palette()));
      painter.drawPolyline(
          QPolygonF({QPointF(box.left(), box.center().y()),
                     QPointF(box.left() + box.width() * 0.4, box.bottom()), box.topRight()}));
      break;
    case PhaseKind::stopped:  // a square
      fill(palette().color(QPalette::PlaceholderText));
      painter.drawRect(box);
      break;
    case PhaseKind::bad:  // a cross
      line(warning_colour(palette()));
      painter.drawLine(box.topLeft(), box.bottomRight());
      painter.drawLine(box.bottomLeft(), box.topRight());
      break;
    case PhaseKind::unknown:  // a ring
      line(palette().color(QPalette::PlaceholderText));
      painter.drawEllipse(box);
      break;
  }
}

}  // namespace ferry::gui
