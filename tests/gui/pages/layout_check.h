#pragma once
// Finds what a user would call broken on a page: text that is cut, widgets that overlap.

#include <QStringList>

class QWidget;

namespace ferry::gui::test {

/** One line for each fault among the visible widgets under `root`; empty: none. */
QStringList layout_faults(const QWidget& root);

}  // namespace ferry::gui::test
