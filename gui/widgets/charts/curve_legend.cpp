#include "gui/widgets/charts/curve_legend.h"

#include <QPainter>
#include <cmath>

#include "gui/widgets/charts/curve_style.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

double draw_legend(QPainter* painter,
                   const std::vector<LegendEntry>& entries,
                   const QRectF& where,
                   const QFont& font,
                   const QPalette& palette) {
  const QFontMetricsF metrics(font);
  const double line = metrics.height() * 1.15, sample = 3.5 * metrics.averageCharWidth(),
               gap = 0.8 * metrics.averageCharWidth(), between = 2.5 * metrics.averageCharWidth();
  double x = where.left(), y = where.top();
  for (const LegendEntry& entry : entries) {
    const double room = where.width() - sample - gap;
    const QString text = metrics.elidedText(entry.text, Qt::ElideMiddle, std::max(room, 1.0));
    const double width = sample + gap + metrics.horizontalAdvance(text);
    if (x > where.left() && x + width > where.right() + 0.5) {
      x = where.left();
      y += line;
    }
    if (painter) {
      draw_sample(*painter, {x, y + 0.1 * line, sample, line * 0.8}, entry.style, palette);
      painter->setFont(font);
      painter->setPen(palette.color(QPalette::Text));
      painter->setLayoutDirection(Qt::LeftToRight);  // as axes go in every language
      painter->drawText(
          QRectF(x + sample + gap, y, width, line),
          words_flags(painter->layoutDirection(), Qt::AlignVCenter | Qt::AlignLeft, text), text);
    }
    x += width + between;
  }
  return entries.empty() ? 0 : y + line - where.top();
}

CurveLegend::CurveLegend(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

void CurveLegend::show_entries(std::vector<LegendEntry> entries) {
  if (entries == entries_) return;
  entries_ = std::move(entries);
  // The layout is asked again only where the number of lines changed: values change all the time.
  if (const int height = heightForWidth(width()); height != lines_height_) {
    lines_height_ = height;
    updateGeometry();
  }
  update();
}

QSize CurveLegend::sizeHint() const {
  const int width = 24 * fontMetrics().averageCharWidth();
  return {width, heightForWidth(std::max(width, this->width()))};
}

QSize CurveLegend::minimumSizeHint() const {
  return {8 * fontMetrics().averageCharWidth(), fontMetrics().height()};
}

int CurveLegend::heightForWidth(int width) const {
  return static_cast<int>(
      std::ceil(draw_legend(nullptr, entries_, QRectF(0, 0, width, 1), font(), palette())));
}

void CurveLegend::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  draw_legend(&painter, entries_, rect(), font(), palette());
}

}  // namespace ferry::gui
