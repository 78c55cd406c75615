#pragma once
// Tooltips show paths, names and messages, which may be anybody's. Qt takes what looks like HTML
// for it: a path could then load pictures or hide its own words.

class QObject;
class QWidget;

namespace ferry::gui {

/** From here on tooltips under the application are shown letter by letter, in views and headers
 * too. */
void install_plain_tips(QObject& application);

/** This widget's tooltip is HTML of our own. */
void allow_rich_tip(QWidget& widget);

}  // namespace ferry::gui
