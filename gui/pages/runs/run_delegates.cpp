#include "gui/pages/runs/run_delegates.h"

#include <QApplication>
#include <QPainter>
#include <cmath>

#include "gui/models/runs/run_list_model.h"
#include "gui/widgets/look.h"
#include "gui/widgets/runs/run_shape.h"

namespace ferry::gui {

namespace {

/** Draws the cell's ground, selection and focus, and gives the space inside it. */
QRect draw_ground(QPainter& painter, QStyleOptionViewItem option) {
  option.text.clear();
  option.features.setFlag(QStyleOptionViewItem::HasDisplay, false);
  if (option.widget)
    option.widget->style()->drawControl(QStyle::CE_ItemViewItem, &option, &painter, option.widget);
  const int space = option.fontMetrics.averageCharWidth();
  return option.rect.adjusted(space, 0, -space, 0);
}

bool is_selected(const QStyleOptionViewItem& option) {
  return option.state & QStyle::State_Selected;
}

QColor text_colour(const QStyleOptionViewItem& option) {
  return option.palette.color(is_selected(option) ? QPalette::HighlightedText : QPalette::Text);
}

QColor accent(const QStyleOptionViewItem& option) {
  return option.palette.color(is_selected(option) ? QPalette::HighlightedText : QPalette::Link);
}

/** The shape of a state is as high as its word's capitals. */
double shape_side(const QStyleOptionViewItem& option) {
  return option.fontMetrics.capHeight() * 1.1;
}

/** The width of the shape and the gap beside it. */
int shape_room(const QStyleOptionViewItem& option) {
  return static_cast<int>(std::ceil(shape_side(option))) + option.fontMetrics.averageCharWidth();
}

void draw_text(QPainter& painter,
               const QStyleOptionViewItem& option,
               const QRect& place,
               const QString& text,
               Qt::Alignment side = Qt::AlignLeading,
               Qt::TextElideMode elides = Qt::ElideRight) {
  painter.setPen(text_colour(option));
  painter.setFont(option.font);
  draw_words(painter, place, int(side | Qt::AlignVCenter) | Qt::TextSingleLine,
             option.fontMetrics.elidedText(text, elides, place.width()));
}

}  // namespace

void CellDelegate::paint(QPainter* painter,
                         const QStyleOptionViewItem& option,
                         const QModelIndex& index) const {
  QStyleOptionViewItem cell = option;
  initStyleOption(&cell, index);
  const QString text = cell.text;
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  const QRect inside = draw_ground(*painter, cell);
  draw(*painter, cell, inside, text, index);
  painter->restore();
}

void TextDelegate::draw(QPainter& painter,
                        const QStyleOptionViewItem& cell,
                        const QRect& inside,
                        const QString& text,
                        const QModelIndex& index) const {
  Q_UNUSED(index);
  draw_text(painter, cell, inside, text, cell.displayAlignment & Qt::AlignHorizontal_Mask, elides_);
}

QSize StateDelegate::sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const {
  const QSize text = CellDelegate::sizeHint(option, index);
  return {text.width() + shape_room(option), text.height()};
}

void StateDelegate::draw(QPainter& painter,
                         const QStyleOptionViewItem& cell,
                         const QRect& inside,
                         const QString& text,
                         const QModelIndex& index) const {
  const auto group = static_cast<RunGroup>(index.data(RunListModel::group_role).toInt());
  const double side = shape_side(cell);
  const bool is_mirrored = cell.direction == Qt::RightToLeft;
  const QRectF box(is_mirrored ? inside.right() - side : inside.left(),
                   inside.center().y() - side / 2 + 0.5, side, side);
  painter.setPen(group == RunGroup::running || group == RunGroup::paused ? accent(cell)
                                                                         : text_colour(cell));
  draw_run_shape(painter, box, group);
  const int taken = shape_room(cell);
  draw_text(painter, cell, inside.adjusted(is_mirrored ? 0 : taken, 0, is_mirrored ? -taken : 0, 0),
            text);
}

QSize SparklineDelegate::sizeHint(const QStyleOptionViewItem& option,
                                  const QModelIndex& index) const {
  constexpr int kChars = 9;
  return {kChars * option.fontMetrics.averageCharWidth(),
          CellDelegate::sizeHint(option, index).height()};
}

void SparklineDelegate::draw(QPainter& painter,
                             const QStyleOptionViewItem& cell,
                             const QRect& inside,
                             const QString& text,
                             const QModelIndex& index) const {
  Q_UNUSED(text);
  const double pad = inside.height() * 0.2;
  const QRectF room = QRectF(inside).adjusted(0, pad, 0, -pad);
  const QVariantList values = index.data(RunListModel::sparkline_role).toList();
  double low = 1e300, high = -1e300;
  for (const QVariant& value : values)
    if (const double loss = value.toDouble(); std::isfinite(loss)) {
      low = std::min(low, loss);
      high = std::max(high, loss);
    }
  if (low <= high && values.size() > 1) {
    const double thick = cell.fontMetrics.height() / 11.0;
    painter.setPen(QPen(accent(cell), thick, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    QPolygonF line;
    const auto finish_line = [&] {
      if (line.size() == 1) painter.drawPoint(line[0]);
      if (line.size() > 1) painter.drawPolyline(line);
      line.clear();
    };
    for (qsizetype i = 0; i < values.size(); ++i) {
      const double loss = values[i].toDouble();
      const double x = room.left() + room.width() * double(i) / double(values.size() - 1);
      if (!std::isfinite(loss)) {
        // A gap, with a mark at the bottom: a number was not finite there.
        finish_line();
        painter.drawLine(QPointF(x, room.bottom() - 2 * thick), QPointF(x, room.bottom()));
        continue;
      }
      const double share = high > low ? (loss - low) / (high - low) : 0.5;
      line << QPointF(x, room.bottom() - share * room.height());
    }
    finish_line();
  }
}

void ProgressDelegate::draw(QPainter& painter,
                            const QStyleOptionViewItem& cell,
                            const QRect& inside,
                            const QString& text,
                            const QModelIndex& index) const {
  const QVariant share = index.data(RunListModel::progress_role);
  const int bar = share.isValid() ? std::max(3, cell.fontMetrics.height() / 5) : 0;
  const int all = cell.fontMetrics.height() + bar + (bar > 0 ? 2 : 0);
  const int top = inside.center().y() - all / 2;
  draw_text(painter, cell, QRect(inside.left(), top, inside.width(), cell.fontMetrics.height()),
            text);
  if (share.isValid()) {
    const QRectF track(inside.left(), top + all - bar, inside.width(), bar);
    QColor ground = text_colour(cell);
    ground.setAlphaF(0.22F);
    painter.setPen(Qt::NoPen);
    painter.setBrush(ground);
    painter.drawRoundedRect(track, bar / 2.0, bar / 2.0);
    QRectF done = track;
    done.setWidth(track.width() * share.toDouble());
    if (cell.direction == Qt::RightToLeft) done.moveRight(track.right());
    painter.setBrush(accent(cell));
    if (done.width() > 0) painter.drawRoundedRect(done, bar / 2.0, bar / 2.0);
  }
}

}  // namespace ferry::gui
