#pragma once
// A wheel over a closed combo box, a spin box or a slider scrolls the page and changes no value.

#include <QWidget>

namespace ferry::gui {

/** Passes the wheel on to what is around `widget`, and lets no wheel give it the focus. */
void guard_wheel(QWidget* widget);

}  // namespace ferry::gui
