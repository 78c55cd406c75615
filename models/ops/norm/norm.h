#pragma once
// LayerNorm on tensors, with the bias, dropout and residual before it or the dropout after it.
// Tensors are dense, of one type unless said; T tokens, W width.

#include <ATen/core/Tensor.h>

#include "models/block.h"
#include "models/ops/dropout.h"

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

/** z = dropout(a + bias) + residual, y = LayerNorm(z). bias, residual may be undefined; z or y may
 * be a. */
void dropout_residual_norm_forward(const at::Tensor& a,
                                   const at::Tensor& bias,
                                   const at::Tensor& residual,
                                   const NormParams& norm,
                                   float eps,
                                   Dropout dropout,
                                   at::Tensor& z,
                                   NormState& state,
                                   at::Tensor& y);
/** dz, which is the residual's gradient too, with d_sum added: the gradient that reaches z past the
 * norm, may be undefined. da = dropout'(dz) (may be undefined without dropout); the gradients of
 * the norm's parameters and of bias (may be undefined). dz may be dy or d_sum. */
void dropout_residual_norm_backward(const at::Tensor& dy,
                                    const at::Tensor& z,
                                    const NormParams& norm,
                                    const NormState& state,
                                    const at::Tensor& d_sum,
                                    Dropout dropout,
                                    at::Tensor& dz,
                                    const at::Tensor& da,
                                    NormParams& d_norm,
                                    const at::Tensor& dbias,
                                    Scratch& scratch);

/** y = LayerNorm(z) again, from the moments that the forward kept: the same bits. */
void norm_apply(const at::Tensor& z, const NormParams& norm, const NormState& state, at::Tensor& y);

/** y = dropout(LayerNorm(z)). y may be z. */
void norm_dropout_forward(const at::Tensor& z,
                          const NormParams& norm,
                          float eps,
                          Dropout dropout,
                          NormState& state,
                          at::Tensor& y);
/** dz with d_sum (or undefined) added, as above. */
void norm_dropout_backward(const at::Tensor& dy,
                           const at::Tensor& z,
                           const NormParams& norm,
                           const NormState& state,
                           const at::Tensor& d_sum,
                           Dropout dropout,
                           at::Tensor& dz,
                           NormParams& d_norm,
                           Scratch& scratch);

}  // namespace ferry::ops
