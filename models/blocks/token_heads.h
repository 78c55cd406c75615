#pragma once
// The ends of the heads that say something of each token, which encoders and decoders share: labels
// of tokens, and the places of answers. Torch-free.

#include <string>

#include "models/blocks/block_builder.h"

namespace ferry {

/** The labels' logits of each token of `x` (T, columns), and the block's end. `hf` names the linear
 * map in files, without ".weight" and ".bias". */
void end_in_token_labels(BlockBuilder& b,
                         const ModelTable& model,
                         ValueId x,
                         const std::string& hf,
                         bool has_bias = true);

/** Two logits of each token of `x` (T, columns), for start and end of the answer, and the block's
 * end. */
void end_in_answer_spans(BlockBuilder& b, const ModelTable& model, ValueId x);

}  // namespace ferry
