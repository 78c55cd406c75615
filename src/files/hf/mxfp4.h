#pragma once
// Matrices of MXFP4 in a checkpoint, as gpt-oss has them: NAME_blocks (rows, blocks, 16) of two FP4
// values a byte, the first in the low half, and NAME_scales (rows, blocks) of powers of two, for 32
// values each. They become one tensor NAME.weight with the values that they stand for.

#include <span>
#include <string>

#include "src/files/hf/bitsandbytes.h"

namespace ferry {

/** Adds to `out` each matrix, and the names of the tensors it was made of. Throws Error(data) where
 * one of the two is missing, or of another shape than the other says. Tensors of several matrices
 * (experts) are left alone. */
void add_mxfp4(std::span<const StoredTensor* const> tensors,
               const std::string& file,
               Dequantised& out);

}  // namespace ferry
