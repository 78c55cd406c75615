#include "gui/widgets/runs/run_shape.h"

#include <QPainter>

namespace ferry::gui {

void draw_run_shape(QPainter& painter, const QRectF& box, RunGroup group) {
  const QColor colour = painter.pen().color();
  painter.setBrush(colour);
  const double w = box.width(), h = box.height();
  switch (group) {
    case RunGroup::running:
      painter.setPen(Qt::NoPen);
      painter.drawPolygon(
          QPolygonF({box.topLeft(), {box.right(), box.center().y()}, box.bottomLeft()}));
      break;
    case RunGroup::paused:
      painter.setPen(Qt::NoPen);
      painter.drawRect(QRectF(box.left(), box.top(), w * 0.33, h));
      painter.drawRect(QRectF(box.right() - w * 0.33, box.top(), w * 0.33, h));
      break;
    case RunGroup::finished:
      painter.setPen(QPen(colour, w * 0.18, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
      painter.drawPolyline(QPolygonF({{box.left(), box.top() + h * 0.55},
                                      {box.left() + w * 0.38, box.bottom() - h * 0.08},
                                      {box.right(), box.top() + h * 0.12}}));
      break;
    case RunGroup::stopped:
      painter.setPen(Qt::NoPen);
      painter.drawRect(box.adjusted(w * 0.08, h * 0.08, -w * 0.08, -h * 0.08));
      break;
    case RunGroup::failed: {
      painter.setPen(QPen(colour, w * 0.18, Qt::SolidLine, Qt::RoundCap));
      const QRectF in = box.adjusted(w * 0.1, h * 0.1, -w * 0.1, -h * 0.1);
      painter.drawLine(in.topLeft(), in.bottomRight());
      painter.drawLine(in.bottomLeft(), in.topRight());
      break;
    }
    case RunGroup::unreadable:
      painter.setPen(QPen(colour, w * 0.14));
      painter.setBrush(Qt::NoBrush);
      painter.drawEllipse(box.adjusted(w * 0.08, h * 0.08, -w * 0.08, -h * 0.08));
      break;
  }
}

}  // namespace ferry::gui
