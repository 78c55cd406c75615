#pragma once
// The service's own short sentences in the app's language: why something may not be done now, how a
// run ended, what a plan chose. Sentences that are not known stay as they are.

#include <QString>

namespace ferry::gui {

/** Parts between semicolons are taken by themselves, and numbers stand for any number. */
QString service_words(const QString& said);

}  // namespace ferry::gui
