#pragma once
// The tensors of a LayerNorm, as its functions take them.

#include <ATen/core/Tensor.h>

namespace ferry::ops {

/** A LayerNorm's parameters, and their gradients in the backward. */
struct NormParams {
  at::Tensor weight;  // (W)
  at::Tensor bias;    // (W)
};
/** The values that a LayerNorm keeps: fp32, one a row. */
struct NormState {
  at::Tensor mean;  // (T)
  at::Tensor rstd;  // (T)
};

}  // namespace ferry::ops
