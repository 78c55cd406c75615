#pragma once
// The head of a prompt (models/core/prompt.h) in place of a language model's. All else of the model
// stays as it is, and so do the names of its files. Torch-free.

#include "models/core/prompt.h"
#include "models/core/tensor_table.h"

namespace ferry {

/** Gives a language model, whose table of words is whole, the labels that words stand for. Its head
 * then works on one token of each sequence (BatchTensors::label_rows). Plans the head anew. */
void set_prompt_head(ModelTable& model, const PromptHead& head);

/** The tensor is of labels or soft tokens, which no language model has. */
inline bool is_of_prompt(const HfEntry& entry) {
  return entry.hf_name == kLabelRows || entry.hf_name == kSoftRows;
}

}  // namespace ferry
