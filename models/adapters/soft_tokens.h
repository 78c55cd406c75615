#pragma once
// Soft tokens: tokens beside the vocabulary, each with a trained row in place of a word's (Lester
// et al. 2021; Qin and Eisner 2021). Their ids follow the ids of the vocabulary, so that texts hold
// them like any other token. Torch-free.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/core/prompt.h"
#include "models/core/tensor_table.h"

namespace ferry {

/** Gives a model, whose table of words is whole, so many soft tokens, whose rows are
 * `hf_name` in files. Plans the embeddings anew. */
void add_soft_tokens(ModelTable& model,
                     std::span<const SoftToken> tokens,
                     const std::string& hf_name,
                     bool is_delta);

/** The rows of a model's soft tokens; null: it has none. */
const HfEntry* find_soft_tokens(const ModelTable& model);
/** Other starts of the same number of tokens. */
void start_soft_tokens(ModelTable& model, std::vector<SoftToken> tokens);

}  // namespace ferry
