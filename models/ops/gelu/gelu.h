#pragma once
// GELU on tensors, the exact form, with the bias before it. Tensors are dense and of one type.

#include <ATen/core/Tensor.h>

#include "models/block.h"

namespace ferry::ops {

/** h = a + bias, g = gelu(h), (T, N); exact form. h may be a. */
void bias_gelu_forward(const at::Tensor& a, const at::Tensor& bias, at::Tensor& h, at::Tensor& g);
/** dh = dg gelu'(h), dbias its column sum, g = gelu(h) if defined. dh may be dg. */
void gelu_backward(const at::Tensor& dg,
                   const at::Tensor& h,
                   at::Tensor& dh,
                   at::Tensor& dbias,
                   const at::Tensor& g,
                   Scratch& scratch);

}  // namespace ferry::ops
