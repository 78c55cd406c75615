#pragma once
// A finding of the doctor in the app's words.

#include <QString>

#include "src/service/machine/diagnosis.h"

namespace ferry::gui {

struct FindingWords {
  QString what;
  QString cure;     ///< what to do, in words; empty: nothing
  QString command;  ///< for a terminal, where a command does it; empty: none does
};

FindingWords words_of_finding(const service::Finding& finding);

}  // namespace ferry::gui
