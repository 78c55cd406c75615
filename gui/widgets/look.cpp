#include "gui/widgets/look.h"

#include <QEvent>

namespace ferry::gui {

QColor error_colour(const QPalette& palette) {
  const bool is_dark = palette.color(QPalette::Window).lightnessF() < 0.5;
  return is_dark ? QColor(0xff, 0x9a, 0x8f) : QColor(0xb0, 0x1e, 0x1e);
}

namespace {

class QuietLabel : public QLabel {
 public:
  using QLabel::QLabel;
  void take_colour() {
    QPalette quiet = palette();
    const QColor colour = quiet.color(QPalette::PlaceholderText);
    if (quiet.color(QPalette::WindowText) == colour) return;
    quiet.setColor(QPalette::WindowText, colour);
    setPalette(quiet);
  }

 protected:
  void changeEvent(QEvent* event) override {
    QLabel::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) take_colour();
  }
};

}  // namespace

QLabel* quiet_label(const QString& text, QWidget* parent) {
  auto* const label = new QuietLabel(text, parent);
  label->take_colour();
  return label;
}

QLabel* heading_label(const QString& text, QWidget* parent) {
  auto* const label = new QLabel(text, parent);
  QFont font = label->font();
  font.setBold(true);
  font.setPointSizeF(font.pointSizeF() * 1.15);
  label->setFont(font);
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
