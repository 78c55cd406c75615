#include "gui/app/palette.h"

#include <QApplication>
#include <QFont>
#include <QPointer>
#include <QStyle>
#include <cmath>

#include "gui/app/app_style.h"

namespace ferry::gui {

namespace {

struct Colours {
  QColor window, base, other_base, text, button, link, highlight, highlighted, mid, light;
};

QPalette palette_of(const Colours& c) {
  QPalette p;
  p.setColor(QPalette::Window, c.window);
  p.setColor(QPalette::WindowText, c.text);
  p.setColor(QPalette::Base, c.base);
  p.setColor(QPalette::AlternateBase, c.other_base);
  p.setColor(QPalette::ToolTipBase, c.base);
  p.setColor(QPalette::ToolTipText, c.text);
  p.setColor(QPalette::PlaceholderText, c.mid);
  p.setColor(QPalette::Text, c.text);
  p.setColor(QPalette::Button, c.button);
  p.setColor(QPalette::ButtonText, c.text);
  p.setColor(QPalette::BrightText, Qt::white);
  p.setColor(QPalette::Link, c.link);
  p.setColor(QPalette::LinkVisited, c.link);
  p.setColor(QPalette::Highlight, c.highlight);
  p.setColor(QPalette::HighlightedText, c.highlighted);
  p.setColor(QPalette::Mid, c.mid);
  p.setColor(QPalette::Light, c.light);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText})
    p.setColor(QPalette::Disabled, role, c.mid);
  return p;
}

double luminance(const QColor& colour) {
  const auto linear = [](double channel) {
    return channel <= 0.03928 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) +
         0.0722 * linear(colour.blueF());
}

}  // namespace

QPalette light_palette() {
  return palette_of({.window = {0xf4, 0xf5, 0xf7},
                     .base = Qt::white,
                     .other_base = {0xf0, 0xf2, 0xf5},
                     .text = {0x1c, 0x1f, 0x24},
                     .button = {0xe9, 0xeb, 0xef},
                     .link = {0x0b, 0x57, 0xa8},
                     .highlight = {0x1f, 0x5f, 0xb4},
                     .highlighted = Qt::white,
                     .mid = {0x5d, 0x65, 0x70},
                     .light = Qt::white});
}

QPalette dark_palette() {
  return palette_of({.window = {0x20, 0x22, 0x26},
                     .base = {0x18, 0x1a, 0x1d},
                     .other_base = {0x24, 0x27, 0x2b},
                     .text = {0xe8, 0xea, 0xed},
                     .button = {0x30, 0x34, 0x3a},
                     .link = {0x8a, 0xb8, 0xf5},
                     .highlight = {0x2f, 0x6f, 0xc4},
                     .highlighted = Qt::white,
                     .mid = {0xa0, 0xa7, 0xb1},
                     .light = {0x4a, 0x50, 0x58}});
}

void apply_theme(Theme theme) {
  // Fusion draws with the palette alone, so both themes look alike on every desktop.
  static QPointer<AppStyle> style;
  if (!style) QApplication::setStyle(style = new AppStyle);
  const bool is_dark =
      theme == Theme::dark ||
      (theme == Theme::system &&
       QApplication::style()->standardPalette().color(QPalette::Window).lightnessF() < 0.5);
  QApplication::setPalette(is_dark ? dark_palette() : light_palette());
}

void apply_zoom(int percent) {
  static const double system = QApplication::font().pointSizeF();
  const double before = QApplication::font().pointSizeF(), now = system * percent / 100;
  if (before == now || system <= 0) return;
  // Headings have sizes of their own, which do not follow the application's.
  for (QWidget* const widget : QApplication::allWidgets()) {
    QFont font = widget->font();
    if (!widget->testAttribute(Qt::WA_SetFont) || !(font.resolveMask() & QFont::SizeResolved))
      continue;
    font.setPointSizeF(font.pointSizeF() * now / before);
    widget->setFont(font);
  }
  QFont font = QApplication::font();
  font.setPointSizeF(now);
  QApplication::setFont(font);
}

double contrast(const QColor& a, const QColor& b) {
  const double x = luminance(a), y = luminance(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace ferry::gui
