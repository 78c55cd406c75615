#pragma once
// Classification of texts, or pairs of texts: one class each, any number of classes, or a number
// (a regression).

#include "src/tasks/task.h"

namespace ferry {

TaskKind classification_kind();

}  // namespace ferry
