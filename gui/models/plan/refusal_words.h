#pragma once
// A plan's refusal in the app's words.

#include <QString>

namespace ferry::gui {

struct RefusalWords {
  QString why;   ///< what it needs, and what there is
  QString help;  ///< with which settings it fits
};

/** The words for the planner's message "[plan] the model does not fit: it needs ... - it fits with
 * ...". A message of another form stays as it is, with the labels of options in place of their
 * keys. */
RefusalWords words_of_refusal(const QString& message);

}  // namespace ferry::gui
