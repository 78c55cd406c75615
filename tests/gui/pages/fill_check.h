#pragma once
// Finds what a user would call bare on a page: tables beside an empty band, a page of one colour.

#include <QStringList>

class QImage;
class QWidget;

namespace ferry::gui {

/** One line for each visible table or tree under `root` whose columns end before its right edge, or
 * beyond it though they are wider than they must be, or whose header stands in the middle above
 * cells that begin at the side; empty: none. */
QStringList column_faults(const QWidget& root);

/** The share of the most frequent colour, 0 to 1: a page without anything on it is one colour. The
 * left sixth is left out: the list of pages is there. */
double emptiness(const QImage& image);

}  // namespace ferry::gui
