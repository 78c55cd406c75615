#pragma once
// Signs for good, doubtful and bad: told apart by shape, too.

#include <QPixmap>
#include <QWidget>

namespace ferry::gui {

enum class VerdictIcon { tick, mark, cross, note };

/** `size` logical pixels square, in colours that suit the widget's palette. */
QPixmap verdict_pixmap(VerdictIcon icon, int size, const QWidget& widget);

}  // namespace ferry::gui
