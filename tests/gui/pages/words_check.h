#pragma once
// Finds English words in an app that speaks another language.

#include <QStringList>

class QWidget;

namespace ferry::gui {

/** Phrases of two English words or more on visible widgets under `root`. Single words may be names
 * of options and models. Texts that are edited and cells that show the user's texts are left out.
 */
QStringList english_phrases(const QWidget& root);

}  // namespace ferry::gui
