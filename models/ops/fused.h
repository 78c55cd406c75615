#pragma once
// The fused operations on tensors: on the CPU through cpu_kernels.h, on a GPU through
// cuda_kernels.h, with the same meaning. All write into tensors they are given; temporaries come
// from the scratch, as many bytes as scratch_sizes.h says. Tensors are dense, of one type unless
// said; T tokens, W width.

#include <ATen/core/Tensor.h>

#include "models/block.h"
#include "models/ops/dropout.h"

namespace ferry::ops {

/** A LayerNorm's parameters, and their gradients in the backward. */
struct NormParams {
  at::Tensor weight;  // (W)
  at::Tensor bias;    // (W)
};
/** What a LayerNorm keeps: fp32, one value a row. */
struct NormState {
  at::Tensor mean;  // (T)
  at::Tensor rstd;  // (T)
};

/** h = a + bias, g = gelu(h), (T, N); exact form. h may be a. */
void bias_gelu_forward(const at::Tensor& a, const at::Tensor& bias, at::Tensor& h, at::Tensor& g);
/** dh = dg gelu'(h), dbias its column sum, g = gelu(h) if defined. dh may be dg. */
void gelu_backward(const at::Tensor& dg,
                   const at::Tensor& h,
                   at::Tensor& dh,
                   at::Tensor& dbias,
                   const at::Tensor& g,
                   Scratch& scratch);

/** out (N) = column sum of x (T, N). */
void column_sum(const at::Tensor& x, at::Tensor& out, Scratch& scratch);

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
/** dz, which is the residual's gradient too, and da = dropout'(dz) (may be undefined without
 * dropout); the gradients of the norm's parameters and of bias (may be undefined). dz may be dy. */
void dropout_residual_norm_backward(const at::Tensor& dy,
                                    const at::Tensor& z,
                                    const NormParams& norm,
                                    const NormState& state,
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
void norm_dropout_backward(const at::Tensor& dy,
                           const at::Tensor& z,
                           const NormParams& norm,
                           const NormState& state,
                           Dropout dropout,
                           at::Tensor& dz,
                           NormParams& d_norm,
                           Scratch& scratch);

/** sum (T, W) = the three tables' rows of each token. */
void embedding_forward(const BatchTensors& batch,
                       const at::Tensor& word,
                       const at::Tensor& position,
                       const at::Tensor& type,
                       at::Tensor& sum);
/** d_table (n, W) = for each row the sum of dx over the tokens with that id, in token order;
 * nothing where it is undefined. */
void embedding_backward(const at::Tensor& ids,
                        const at::Tensor& dx,
                        at::Tensor& d_table,
                        Scratch& scratch);

/** out = dropout(x), on the forward's input as on the backward's gradient; (n, W). out may be x. */
void dropout(const at::Tensor& x, Dropout dropout, at::Tensor& out, Scratch& scratch);

/** out (n, W) = the rows of x (T, W) that `rows` (>= n int32) names. */
void gather_rows(const at::Tensor& x, const at::Tensor& rows, at::Tensor& out);
/** dx (T, W) = 0 but for the rows that `rows` names: those of d_out (n, W). */
void scatter_rows(const at::Tensor& d_out, const at::Tensor& rows, at::Tensor& dx);

}  // namespace ferry::ops
