#pragma once
// The task of a training whose settings name none. A classifier is the built-in one; a decoder with
// data that have no labels can only mean a language model, and one with pairs of answers only a
// preference. `ferry train`, `plan` and `preview` ask, and the trainer. No torch.

#include <string>

#include "src/config/config.h"

namespace ferry {

/** Sets the task where no source names a task and the model is a decoder's language model:
 * preference where rows have a chosen and a rejected answer, and causal-lm where the data have no
 * labels (a plain text, rows of prompt and completion) or, for a plan, are not given. Gives back a
 * line for the user that says so, else an empty text. Reads config.json and, for a decoder, the
 * data; never throws for what is wrong with either, which is said later. */
std::string choose_task(config::Config& config);

}  // namespace ferry
