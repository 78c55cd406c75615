#include "gui/widgets/charts/score_bar.h"

#include <QApplication>
#include <QPainter>
#include <cmath>

#include "gui/widgets/look.h"

namespace ferry::gui {

void ScoreBar::paint(QPainter* painter,
                     const QStyleOptionViewItem& option,
                     const QModelIndex& index) const {
  QStyleOptionViewItem cell = option;
  initStyleOption(&cell, index);
  const QString number = cell.text;
  cell.text.clear();
  const QStyle* style = cell.widget ? cell.widget->style() : QApplication::style();
  style->drawControl(QStyle::CE_ItemViewItem, &cell, painter, cell.widget);

  const bool is_selected = cell.state & QStyle::State_Selected;
  const int gap = cell.fontMetrics.averageCharWidth();
  const int for_number = cell.fontMetrics.horizontalAdvance(QStringLiteral("100.0 %0"));
  const QRect inside = cell.rect.adjusted(gap, 0, -gap, 0);
  const int height = std::max(4, cell.fontMetrics.height() * 2 / 3);
  const auto placed = [&](int width) {
    return QStyle::visualRect(
        cell.direction, inside,
        QRect(inside.left(), inside.center().y() - height / 2, width, height));
  };
  const QRect groove = placed(inside.width() - for_number);
  const double share = index.data(share_role).toDouble();
  painter->save();
  painter->setPen(cell.palette.color(is_selected ? QPalette::HighlightedText : QPalette::Mid));
  painter->drawRect(groove.adjusted(0, 0, -1, -1));
  if (std::isfinite(share)) {
    const double filled = std::clamp(share, 0., 1.) * groove.width();
    painter->fillRect(
        placed(static_cast<int>(std::lround(filled))),
        cell.palette.color(is_selected ? QPalette::HighlightedText : QPalette::Highlight));
  }
  painter->setPen(cell.palette.color(is_selected ? QPalette::HighlightedText : QPalette::Text));
  draw_words(*painter, inside, Qt::AlignTrailing | Qt::AlignVCenter, number);
  painter->restore();
}

}  // namespace ferry::gui
