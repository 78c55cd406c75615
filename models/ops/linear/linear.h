#pragma once
// Fully connected layer: y = x w^T + b and its gradients, on ATen's GEMM with given outputs. All
// tensors are dense and of one type unless said; T tokens, weights (out, in) as Hugging Face stores
// them.

#include <ATen/core/Tensor.h>

#include "models/core/block.h"

namespace ferry::ops {

/** y (T, out) = factor * (x (T, in) w^T + bias); bias may be undefined. Factors count before values
 * are rounded. */
void linear_forward(const at::Tensor& x,
                    const at::Tensor& w,
                    const at::Tensor& bias,
                    at::Tensor& y,
                    float factor = 1);
/** y (T, out) = factor * x (T, in) w^T + residual, rounded once; y may be residual. */
void linear_forward_add(const at::Tensor& x,
                        const at::Tensor& w,
                        const at::Tensor& residual,
                        at::Tensor& y,
                        float factor = 1);
/** y (T, out) fp32, whatever the type of x: a product of 16 bits is rounded to these first. */
void linear_forward_f32(const at::Tensor& x,
                        const at::Tensor& w,
                        const at::Tensor& bias,
                        at::Tensor& y,
                        Scratch& scratch);
/** dx (T, in) = factor * dy (T, out) w. */
void linear_backward_input(const at::Tensor& dy,
                           const at::Tensor& w,
                           at::Tensor& dx,
                           float factor = 1);
/** dx = factor * dy w + residual, rounded once; dx may be residual. */
void linear_backward_input_add(const at::Tensor& dy,
                               const at::Tensor& w,
                               const at::Tensor& residual,
                               at::Tensor& dx,
                               float factor = 1);
/** dw (out, in) = factor * dy^T x; nothing where dw is undefined. */
void linear_backward_weight(const at::Tensor& dy,
                            const at::Tensor& x,
                            at::Tensor& dw,
                            float factor = 1);

}  // namespace ferry::ops
