#pragma once
// Icons of the app: lines in the colour of the text beside them, whichever theme is on.

#include <QIcon>

namespace ferry::gui {

/** By name: "runs", "pause", ... An empty icon for a name that is none. */
QIcon line_icon(const char* name);

}  // namespace ferry::gui
