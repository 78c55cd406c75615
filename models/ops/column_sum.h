#pragma once
// Scratch of the sum over a value's rows, as the gradient of a bias is. Torch-free.

#include "models/core/operation.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

inline int64_t column_sum_bytes(const OpCase& its, ValueId value) {
  return stacked_bytes(column_sum_scratch_bytes(its.rows(value), its.columns(value)));
}

}  // namespace ferry::ops
