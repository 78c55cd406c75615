#include "gui/widgets/forms/choice_card.h"

#include <QEvent>
#include <QPainter>
#include <QStyle>
#include <QStyleOptionFocusRect>

#include "gui/widgets/look.h"

namespace ferry::gui {

ChoiceCard::ChoiceCard(const QString& title, const QString& text, QWidget* parent)
    : QAbstractButton(parent), text_(text) {
  setText(title);  // with its mnemonic
  setCheckable(true);
  setAutoExclusive(true);
  setFocusPolicy(Qt::StrongFocus);
  setAttribute(Qt::WA_Hover);
  setAccessibleName(QString(title).remove('&'));
  setAccessibleDescription(text);
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
}

int ChoiceCard::margin() const {
  return fontMetrics().height() * 3 / 4;
}

int ChoiceCard::mark_width() const {
  return style()->pixelMetric(QStyle::PM_ExclusiveIndicatorWidth, nullptr, this) +
         style()->pixelMetric(QStyle::PM_RadioButtonLabelSpacing, nullptr, this);
}

QFont ChoiceCard::title_font() const {
  return bold_font(font());
}

int ChoiceCard::heightForWidth(int width) const {
  const int for_text = std::max(1, width - 2 * margin() - mark_width());
  const QRect text = fontMetrics().boundingRect(QRect(0, 0, for_text, 100000),
                                                Qt::TextWordWrap | Qt::AlignLeading, text_);
  return 2 * margin() + QFontMetrics(title_font()).lineSpacing() + margin() / 2 + text.height();
}

QSize ChoiceCard::sizeHint() const {
  const int width = fontMetrics().averageCharWidth() * 34;
  return {width, heightForWidth(width)};
}

QSize ChoiceCard::minimumSizeHint() const {
  const int width = fontMetrics().averageCharWidth() * 22;
  // A layout that asks for no height for a width still gets all lines.
  return {width, heightForWidth(std::max(width, this->width()))};
}

void ChoiceCard::resizeEvent(QResizeEvent* event) {
  QAbstractButton::resizeEvent(event);
  updateGeometry();
}

void ChoiceCard::enterEvent(QEnterEvent* event) {
  QAbstractButton::enterEvent(event);
  update();
}
void ChoiceCard::leaveEvent(QEvent* event) {
  QAbstractButton::leaveEvent(event);
  update();
}

void ChoiceCard::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool is_lit = isChecked() || underMouse();
  const double line = isChecked() ? 2 : 1;
  QPen pen(palette().color(is_lit ? QPalette::Highlight : QPalette::Mid), line);
  const double radius = fontMetrics().height() / 3.;
  painter.setPen(pen);
  painter.setBrush(palette().color(isChecked() ? QPalette::Base : QPalette::Window));
  painter.drawRoundedRect(QRectF(rect()).adjusted(line, line, -line, -line), radius, radius);
  // The mark of a radio button: the choice is told without the line's colour.
  const QFontMetrics title_metrics(title_font());
  const int side = style()->pixelMetric(QStyle::PM_ExclusiveIndicatorWidth, nullptr, this);
  const QRect place = QStyle::visualRect(
      layoutDirection(), rect(),
      QRect(margin(), margin() + (title_metrics.lineSpacing() - side) / 2, side, side));
  const QRectF ring = QRectF(place).adjusted(1, 1, -1, -1);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(QPen(palette().color(QPalette::WindowText), 1.2));
  painter.setBrush(palette().color(QPalette::Base));
  painter.drawEllipse(ring);
  if (isChecked()) {
    painter.setBrush(palette().color(QPalette::WindowText));
    const double inset = ring.width() / 4;
    painter.drawEllipse(ring.adjusted(inset, inset, -inset, -inset));
  }

  QRect inside = rect().adjusted(margin() + mark_width(), margin(), -margin(), -margin());
  inside = QStyle::visualRect(layoutDirection(), rect(), inside);
  painter.setFont(title_font());
  painter.setPen(
      palette().color(isEnabled() ? QPalette::Active : QPalette::Disabled, QPalette::WindowText));
  constexpr int kSide = Qt::AlignLeading | Qt::AlignTop;
  draw_words(painter, inside, kSide | Qt::TextShowMnemonic, text());
  painter.setFont(font());
  painter.setPen(palette().color(QPalette::PlaceholderText));
  draw_words(painter, inside.adjusted(0, title_metrics.lineSpacing() + margin() / 2, 0, 0),
             kSide | Qt::TextWordWrap, text_);
  if (!hasFocus()) return;
  QStyleOptionFocusRect focus;
  focus.initFrom(this);
  focus.rect = rect().adjusted(4, 4, -4, -4);
  style()->drawPrimitive(QStyle::PE_FrameFocusRect, &focus, &painter, this);
}

}  // namespace ferry::gui
