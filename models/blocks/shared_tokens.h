#pragma once
// Sequence parallelism: several ranks share the tokens of a micro-batch. All operations but
// attention work on a rank's own tokens. Attention works on all tokens and on a rank's own heads,
// and all-to-all messages lead there and back (DeepSpeed-Ulysses, Jacobs et al. 2023). Torch-free.

#include "models/core/tensor_table.h"

namespace ferry {

/** Gives the model's table the streams of `sp_size` ranks that share tokens; 1: leaves it as it is.
 * Throws Error(usage) where the head reads whole texts. */
void share_tokens(ModelTable& model, int sp_size);

/** Throws Error(usage) where the ranks cannot share the heads of attention. */
void check_heads_to_share(const ModelTable& model, int64_t n_heads, int64_t n_kv_heads);

}  // namespace ferry
