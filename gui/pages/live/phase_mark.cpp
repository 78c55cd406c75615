#include "gui/pages/live/phase_mark.h"

#include <QPainter>

#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/runs/run_shape.h"

namespace ferry::gui {

PhaseMark::PhaseMark(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void PhaseMark::show_group(RunGroup group) {
  group_ = group;
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
  painter.setPen(colour());
  draw_run_shape(painter, box, group_);
}

QColor PhaseMark::colour() const {
  switch (group_) {
    case RunGroup::running:
      return curve_colour(0, palette());
    case RunGroup::paused:
      return curve_colour(1, palette());
    case RunGroup::finished:
      return curve_colour(2, palette());
    case RunGroup::failed:
      return warning_colour(palette());
    case RunGroup::stopped:
    case RunGroup::unreadable:
      break;
  }
  return palette().color(QPalette::PlaceholderText);
}

}  // namespace ferry::gui
