#pragma once
// Learning from pairs of answers to the same prompt: a language model that comes to prefer the
// better one (DPO and its kin, models/core/preference.h), and a classifier that gives each answer a
// number, higher for the better one.

#include "src/tasks/task.h"

namespace ferry {

TaskKind preference_kind();
/** Answers that are good or bad, each by itself. */
TaskKind kto_kind();
TaskKind reward_kind();

}  // namespace ferry
