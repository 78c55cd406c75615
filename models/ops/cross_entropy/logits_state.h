#pragma once
// The state that cross entropy keeps of each row while its classes come in.

#include <ATen/core/Tensor.h>

#include "models/core/block.h"

namespace ferry::ops {

/** The running state of each row's logits, all (rows) fp32. */
struct LogitsState {
  at::Tensor largest;
  at::Tensor sum_exp;  ///< the sum of exp(logit - largest)
  at::Tensor sum;
  at::Tensor label_logit;

  /** Out of the scratch, before any logits. */
  static LogitsState take(int64_t rows, Scratch& scratch);
  /** The content of (4, rows or more): before any logits, or as it is. */
  static LogitsState at(const at::Tensor& memory, int64_t rows, bool starts);
};

}  // namespace ferry::ops
