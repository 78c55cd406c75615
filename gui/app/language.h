#pragma once
// The app's words in the user's language: English, which is in the code, and Simplified Chinese.

#include <QCoreApplication>
#include <QString>

namespace ferry::gui {

/** Translates the application into "en" or "zh_CN"; "" stands for the system's language. Before
 * the first window. */
void install_language(QCoreApplication& app, const QString& language);

}  // namespace ferry::gui
