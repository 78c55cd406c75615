#pragma once
// Ranks that share the work on each micro-batch. Torch-free.
//
// In sequence parallelism the ranks share the tokens. All operations but attention work on a rank's
// tokens. Attention works on all tokens and on a rank's heads, and all-to-all messages lead there
// and back (DeepSpeed-Ulysses, Jacobs et al. 2023). Or it works on a rank's tokens, too, and keys
// and values of the other ranks come round (ring attention).
//
// In tensor parallelism the ranks share the layers. Each has some heads of attention and some
// columns of the MLP. It has rows of the matrices that lead there, and columns of the matrices that
// lead back, where the ranks add up their results (Megatron-LM, Shoeybi et al. 2019). All else is
// the same on each rank.

#include "models/core/tensor_table.h"

namespace ferry {

/** Tells the model's table of it, and gives it the streams of ranks that share tokens. Throws
 * Error(usage) where the head reads whole texts, and the ranks share tokens. */
void share_work(ModelTable& model, const Sharing& sharing);

/** Throws Error(usage) where the ranks cannot share so many of `what`. */
void check_shares(const ModelTable& model, int64_t n, const char* what);

}  // namespace ferry
