#pragma once
// Answers to questions: the part of a context that answers a question, or that there is none. Long
// contexts are cut into windows that share tokens, and the best answer of all windows counts, as in
// transformers' run_qa.

#include "src/tasks/task.h"

namespace ferry {

TaskKind question_answering_kind();

}  // namespace ferry
