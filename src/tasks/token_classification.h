#pragma once
// Tags for the words of a text: names in it, parts of speech. The first token of a word has its
// tag, the others have no loss, as transformers' label_all_tokens = False.

#include "src/tasks/task.h"

namespace ferry {

TaskKind token_classification_kind();

}  // namespace ferry
