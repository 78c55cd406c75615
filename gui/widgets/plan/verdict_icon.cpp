#include "gui/widgets/plan/verdict_icon.h"

#include <QPainter>

#include "gui/widgets/look.h"

namespace ferry::gui {

QPixmap verdict_pixmap(VerdictIcon icon, int size, const QWidget& widget) {
  const bool is_dark = has_dark_base(widget.palette());
  const double ratio = widget.devicePixelRatioF();
  QPixmap pixmap(QSize(size, size) * ratio);
  pixmap.setDevicePixelRatio(ratio);
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF area(1, 1, size - 2, size - 2);
  QColor ground;
  switch (icon) {
    case VerdictIcon::tick:
      ground = is_dark ? QColor(0x19, 0x9e, 0x6c) : QColor(0x0c, 0x7f, 0x55);
      break;
    case VerdictIcon::mark:
      ground = is_dark ? QColor(0xe0, 0xa2, 0x1a) : QColor(0xb3, 0x6b, 0x00);
      break;
    case VerdictIcon::cross:
      ground = is_dark ? QColor(0xe0, 0x5a, 0x4e) : QColor(0xc2, 0x2e, 0x24);
      break;
    case VerdictIcon::note:
      ground = is_dark ? QColor(0x4c, 0x9b, 0xe0) : QColor(0x1f, 0x5f, 0xb4);
      break;
  }
  painter.setPen(Qt::NoPen);
  painter.setBrush(ground);
  const auto at = [&](double x, double y) {
    return QPointF(area.x() + x * area.width(), area.y() + y * area.height());
  };
  if (icon == VerdictIcon::mark)
    painter.drawPolygon(QPolygonF({at(0.5, 0.02), at(1, 0.95), at(0, 0.95)}));
  else if (icon == VerdictIcon::cross)
    painter.drawPolygon(QPolygonF({at(0.3, 0), at(0.7, 0), at(1, 0.3), at(1, 0.7), at(0.7, 1),
                                   at(0.3, 1), at(0, 0.7), at(0, 0.3)}));
  else
    painter.drawEllipse(area);
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(Qt::white, size / 9.0, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
  switch (icon) {
    case VerdictIcon::tick:
      painter.drawPolyline(QPolygonF({at(0.27, 0.53), at(0.44, 0.69), at(0.74, 0.34)}));
      break;
    case VerdictIcon::mark:
      painter.drawLine(at(0.5, 0.38), at(0.5, 0.63));
      painter.drawPoint(at(0.5, 0.8));
      break;
    case VerdictIcon::cross:
      painter.drawLine(at(0.33, 0.33), at(0.67, 0.67));
      painter.drawLine(at(0.67, 0.33), at(0.33, 0.67));
      break;
    case VerdictIcon::note:
      painter.drawPoint(at(0.5, 0.27));
      painter.drawLine(at(0.5, 0.48), at(0.5, 0.75));
      break;
  }
  return pixmap;
}

}  // namespace ferry::gui
