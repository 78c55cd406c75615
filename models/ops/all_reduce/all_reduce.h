#pragma once
// Tensors that the ranks of a layer have found, and their sum.

#include <ATen/core/Tensor.h>

#include "models/core/block.h"

namespace ferry::ops {

/** The tensors of all ranks, by rank: (ranks, ...) out of the scratch. */
at::Tensor gather(SharingRanks& ranks, const at::Tensor& mine, Scratch& scratch);

/** Their sum, added in the order of ranks and, of 16 bits, rounded once. `sum` may be `mine`. Each
 * rank sends all that it has found: few ranks share a layer. */
void all_reduce(SharingRanks& ranks, const at::Tensor& mine, at::Tensor& sum, Scratch& scratch);

}  // namespace ferry::ops
