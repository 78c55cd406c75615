#pragma once
// Light and dark: colours of the app, each pair of text and ground at 4.5:1 or more.

#include <QPalette>

#include "gui/models/settings/app_settings.h"

namespace ferry::gui {

QPalette light_palette();
QPalette dark_palette();

/** Sets the application's palette; Theme::system takes the desktop's. */
void apply_theme(Theme theme);

/** Sets the size of all text, in percent of the system's text size. Widgets that are there and
 * widgets that come later have it. */
void apply_zoom(int percent);

/** The contrast of two colours as WCAG 2.1 defines it: 1 to 21. */
double contrast(const QColor& a, const QColor& b);

}  // namespace ferry::gui
