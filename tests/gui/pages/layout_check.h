#pragma once
// Finds what a user would call broken on a page: text that is cut, widgets that overlap or lie
// outside of what can be seen of their parents.

#include <QStringList>

class QWidget;

namespace ferry::gui {

/** One line for each fault among the visible widgets under `root`; empty: none. */
QStringList layout_faults(const QWidget& root);

}  // namespace ferry::gui
