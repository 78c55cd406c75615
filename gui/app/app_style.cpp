#include "gui/app/app_style.h"

#include <QPainter>
#include <QSplitter>
#include <QStyleFactory>
#include <QStyleOption>
#include <QTableView>
#include <QTreeView>

#include "gui/models/text.h"
#include "gui/widgets/look.h"

namespace ferry::gui {

namespace {

/** Pixels of a cell's words to its edges. */
constexpr int kCellMargin = 5;

void draw_edge(QPainter& painter, const QRectF& rect, const QStyleOption& option, double radius) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(Qt::NoBrush);
  const bool has_focus = option.state & QStyle::State_HasFocus;
  painter.setPen(has_focus ? option.palette.color(QPalette::Link) : AppStyle::edge(option.palette));
  painter.drawRoundedRect(rect.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius);
  painter.restore();
}

bool has_columns(const QWidget* view) {
  return qobject_cast<const QTableView*>(view) || qobject_cast<const QTreeView*>(view);
}

bool is_dark(const QPalette& palette) {
  return palette.color(QPalette::Window).lightnessF() < 0.5;
}

}  // namespace

AppStyle::AppStyle() : QProxyStyle(QStyleFactory::create("fusion")) {}

QColor AppStyle::edge(const QPalette& palette) {
  return is_dark(palette) ? QColor(0x7a, 0x81, 0x8b) : QColor(0x84, 0x8b, 0x95);
}

void AppStyle::drawPrimitive(PrimitiveElement element,
                             const QStyleOption* option,
                             QPainter* painter,
                             const QWidget* widget) const {
  QProxyStyle::drawPrimitive(element, option, painter, widget);
  const bool is_button = element == PE_PanelButtonCommand || element == PE_PanelButtonTool;
  if (is_button && option->state & State_On) {
    // Fusion only darkens a button that is switched on. Nobody sees that on dark grounds.
    const QColor colour = option->palette.color(QPalette::Link);
    QColor ground = colour;
    ground.setAlphaF(0.18F);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(colour, 1.5));
    painter->setBrush(ground);
    painter->drawRoundedRect(QRectF(option->rect).adjusted(1, 1, -1, -1), 2, 2);
    painter->restore();
  }
  if (element == PE_PanelLineEdit) {
    // A spin box's own field has no frame of its own.
    const auto* frame = qstyleoption_cast<const QStyleOptionFrame*>(option);
    if (frame && frame->lineWidth > 0) draw_edge(*painter, option->rect, *option, 2);
  } else if (element == PE_IndicatorCheckBox) {
    draw_edge(*painter, option->rect, *option, 1.5);
  } else if (element == PE_IndicatorRadioButton) {
    const double side = std::min(option->rect.width(), option->rect.height());
    draw_edge(*painter, QRectF(option->rect.topLeft(), QSizeF(side, side)), *option, side / 2);
  }
}

void AppStyle::drawComplexControl(ComplexControl control,
                                  const QStyleOptionComplex* option,
                                  QPainter* painter,
                                  const QWidget* widget) const {
  QProxyStyle::drawComplexControl(control, option, painter, widget);
  if (control == CC_SpinBox || control == CC_ComboBox)
    draw_edge(*painter, option->rect, *option, 2);
}

void AppStyle::drawControl(ControlElement element,
                           const QStyleOption* option,
                           QPainter* painter,
                           const QWidget* widget) const {
  const auto* const item = element == CE_ItemViewItem && option->direction == Qt::RightToLeft
                               ? qstyleoption_cast<const QStyleOptionViewItem*>(option)
                               : nullptr;
  if (!item || item->text.isEmpty() || has_letter_from_right(item->text))
    return QProxyStyle::drawControl(element, option, painter, widget);
  // A cell has one direction for its parts and its letters: marks of Unicode turn the letters.
  QStyleOptionViewItem turned = *item;
  turned.text = QChar(0x2066) + item->text + QChar(0x2069);
  QProxyStyle::drawControl(element, &turned, painter, widget);
}

void AppStyle::drawItemText(QPainter* painter,
                            const QRect& rect,
                            int flags,
                            const QPalette& palette,
                            bool enabled,
                            const QString& text,
                            QPalette::ColorRole role) const {
  QProxyStyle::drawItemText(painter, rect, words_flags(painter->layoutDirection(), flags, text),
                            palette, enabled, text, role);
}

int AppStyle::pixelMetric(PixelMetric metric,
                          const QStyleOption* option,
                          const QWidget* widget) const {
  const int usual = QProxyStyle::pixelMetric(metric, option, widget);
  // Words of a header begin where those of its cells do, neither of them at the edge.
  if (metric == PM_HeaderMargin || (metric == PM_FocusFrameHMargin && has_columns(widget)))
    return std::max(usual, kCellMargin);
  return usual;
}

QSize AppStyle::sizeFromContents(ContentsType type,
                                 const QStyleOption* option,
                                 const QSize& size,
                                 const QWidget* widget) const {
  QSize usual = QProxyStyle::sizeFromContents(type, option, size, widget);
  if (type == CT_ItemViewItem && has_columns(widget)) usual.rheight() += kCellMargin;
  const auto* const button =
      type == CT_ToolButton ? qstyleoption_cast<const QStyleOptionToolButton*>(option) : nullptr;
  // Fusion draws the arrow over the words.
  if (button && button->features & QStyleOptionToolButton::HasMenu &&
      button->toolButtonStyle == Qt::ToolButtonTextOnly)
    usual.rwidth() += pixelMetric(PM_MenuButtonIndicator, option, widget);
  return usual;
}

void AppStyle::polish(QWidget* widget) {
  QProxyStyle::polish(widget);
  // Qt 6 places the parts of a mirrored splitter one pixel too far to the right.
  auto* const splitter = qobject_cast<QSplitter*>(widget);
  if (splitter && splitter->orientation() == Qt::Horizontal && splitter->isRightToLeft())
    splitter->setContentsMargins(0, 0, 1, 0);
}

}  // namespace ferry::gui
