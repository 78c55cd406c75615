#include "gui/widgets/look.h"

#include <QComboBox>
#include <QFontDatabase>
#include <QHelpEvent>
#include <QPainter>
#include <QStyle>
#include <QTextDocument>
#include <QTextOption>
#include <QToolTip>
#include <algorithm>

#include "gui/models/text.h"

namespace ferry::gui {

namespace {

/** Characters that a label keeps at least: most captions of forms are shorter. */
constexpr int kLeastChars = 14;

}  // namespace

TextLabel::TextLabel(const QString& text, QWidget* parent) : QLabel(text, parent) {
  // Words of others are no markup.
  setTextFormat(Qt::PlainText);
}

int words_flags(Qt::LayoutDirection direction, int flags, const QString& text) {
  constexpr int kAlignment = Qt::AlignHorizontal_Mask | Qt::AlignVertical_Mask;
  constexpr int kForced = Qt::TextForceLeftToRight | Qt::TextForceRightToLeft;
  const auto side = QStyle::visualAlignment(direction, Qt::Alignment(flags & kAlignment));
  int written = 0;
  if (!(flags & kForced) && words_run_from_right())
    written = has_letter_from_right(text) ? Qt::TextForceRightToLeft : Qt::TextForceLeftToRight;
  return (flags & ~kAlignment) | static_cast<int>(side) | written;
}

void draw_words(QPainter& painter, const QRect& place, int flags, const QString& text) {
  painter.drawText(place, words_flags(painter.layoutDirection(), flags, text), text);
}

void show_code(QWidget& widget) {
  widget.setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  widget.setLayoutDirection(Qt::LeftToRight);
}

QSize TextLabel::minimumSizeHint() const {
  QSize size = QLabel::minimumSizeHint();
  // A picture keeps its size.
  if (!text().isEmpty())
    size.setWidth(std::min(size.width(), kLeastChars * fontMetrics().averageCharWidth()));
  return size;
}

bool TextLabel::is_too_long() const {
  return !wordWrap() && !text().isEmpty() && textFormat() == Qt::PlainText &&
         sizeHint().width() > width();
}

bool TextLabel::event(QEvent* event) {
  // QLabel goes by the direction of its letters, which differs from label to label.
  constexpr Qt::Alignment kSides = Qt::AlignLeft | Qt::AlignRight;
  if (event->type() == QEvent::Polish)
    setAlignment(QStyle::visualAlignment(layoutDirection(), alignment()));
  else if (event->type() == QEvent::LayoutDirectionChange && alignment() & Qt::AlignAbsolute)
    setAlignment(alignment() ^ kSides);
  if (event->type() == QEvent::ToolTip && toolTip().isEmpty() && is_too_long()) {
    QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(),
                       Qt::convertFromPlainText(text()), this);
    return true;
  }
  return QLabel::event(event);
}

void TextLabel::paintEvent(QPaintEvent* event) {
  if (words_run_from_right()) {
    // Lines of a text that can be selected go by their first letter, which may be of a name.
    auto* const lines = findChild<QTextDocument*>();
    const Qt::LayoutDirection direction =
        has_letter_from_right(text()) ? Qt::RightToLeft : Qt::LeftToRight;
    if (lines && lines->defaultTextOption().textDirection() != direction) {
      QTextOption option = lines->defaultTextOption();
      option.setTextDirection(direction);
      lines->setDefaultTextOption(option);
    }
  }
  if (!is_too_long()) return QLabel::paintEvent(event);
  QPainter painter(this);
  drawFrame(&painter);
  const int mnemonic = buddy() ? Qt::TextShowMnemonic : 0;
  const int flags = QStyle::visualAlignment(layoutDirection(), alignment()) | mnemonic;
  const QRect room = contentsRect().adjusted(margin(), margin(), -margin(), -margin());
  style()->drawItemText(&painter, room, flags, palette(), isEnabled(),
                        fontMetrics().elidedText(text(), Qt::ElideRight, room.width(), mnemonic),
                        foregroundRole());
}

void give_way(QComboBox* combo) {
  combo->setSizeAdjustPolicy(QComboBox::AdjustToContents);
  combo->setMinimumWidth(kLeastChars * combo->fontMetrics().averageCharWidth());
}

bool has_dark_base(const QPalette& palette) {
  return palette.color(QPalette::Base).lightnessF() < 0.5;
}

QColor error_colour(const QPalette& palette) {
  const bool is_dark = palette.color(QPalette::Window).lightnessF() < 0.5;
  return is_dark ? QColor(0xff, 0x9a, 0x8f) : QColor(0xb0, 0x1e, 0x1e);
}

QColor mark_colour(const QPalette& palette, int n) {
  static const QColor kLight[] = {{0xcf, 0xe3, 0xff}, {0xff, 0xe2, 0xb8}, {0xd3, 0xf0, 0xcf},
                                  {0xf3, 0xd6, 0xf0}, {0xd2, 0xee, 0xf0}, {0xee, 0xea, 0xb4}};
  static const QColor kDark[] = {{0x1f, 0x45, 0x70}, {0x66, 0x44, 0x10}, {0x24, 0x52, 0x22},
                                 {0x5c, 0x2c, 0x58}, {0x1d, 0x50, 0x54}, {0x52, 0x4e, 0x18}};
  const size_t i = static_cast<size_t>(n) % std::size(kLight);
  return has_dark_base(palette) ? kDark[i] : kLight[i];
}

QFont bold_font(QFont font) {
  font.setBold(true);
  return font;
}

QFont heading_font(QFont font, double larger) {
  font.setBold(true);
  font.setPointSizeF(font.pointSizeF() * larger);
  return font;
}

QLabel* heading_label(const QString& text, double larger) {
  auto* const label = new TextLabel(text);
  label->setFont(heading_font(label->font(), larger));
  return label;
}

QLabel* quiet_label(const QString& text) {
  auto* const label = new TextLabel(text);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

QLabel* note_label(const QString& text) {
  QLabel* const label = quiet_label(text);
  label->setWordWrap(true);
  label->setAlignment(Qt::AlignLeading | Qt::AlignTop);
  return label;
}

ErrorLabel::ErrorLabel(QWidget* parent) : TextLabel({}, parent) {
  setWordWrap(true);
  setTextFormat(Qt::PlainText);
  setTextInteractionFlags(Qt::TextSelectableByMouse);
  hide();
}

void ErrorLabel::set_error(const QString& text) {
  if (error_ == text) return;
  error_ = text;
  setText(text.isEmpty() ? QString() : QStringLiteral("⚠ ") + text);
  setAccessibleName(text.isEmpty() ? QString() : tr("Error: %1").arg(text));
  setHidden(text.isEmpty());
  QEvent palette_changed(QEvent::PaletteChange);
  changeEvent(&palette_changed);
}

void ErrorLabel::changeEvent(QEvent* event) {
  TextLabel::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  QPalette colours = palette();
  const QColor colour = error_colour(colours);
  if (colours.color(QPalette::WindowText) == colour) return;
  colours.setColor(QPalette::WindowText, colour);
  setPalette(colours);
}

}  // namespace ferry::gui
