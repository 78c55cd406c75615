#include "gui/widgets/look.h"

#include <QEvent>

namespace ferry::gui {

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
  auto* const label = new QLabel(text);
  label->setFont(heading_font(label->font(), larger));
  return label;
}

QLabel* quiet_label(const QString& text) {
  auto* const label = new QLabel(text);
  label->setForegroundRole(QPalette::PlaceholderText);
  return label;
}

QLabel* note_label(const QString& text) {
  QLabel* const label = quiet_label(text);
  label->setWordWrap(true);
  label->setAlignment(Qt::AlignLeading | Qt::AlignTop);
  return label;
}

ErrorLabel::ErrorLabel(QWidget* parent) : QLabel(parent) {
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
  QLabel::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  QPalette colours = palette();
  const QColor colour = error_colour(colours);
  if (colours.color(QPalette::WindowText) == colour) return;
  colours.setColor(QPalette::WindowText, colour);
  setPalette(colours);
}

}  // namespace ferry::gui
