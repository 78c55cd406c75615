#pragma once
// Language models, trained on texts without labels. A masked one (an encoder) guesses hidden tokens
// (Devlin et al. 2018); a causal one (a decoder) the next token, of whole documents or of the
// completions of prompts.

#include "src/tasks/task.h"

namespace ferry {

TaskKind masked_lm_kind();
TaskKind causal_lm_kind();

}  // namespace ferry
