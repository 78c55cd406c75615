#pragma once
// The fused operations on tensors: on the CPU through cpu_kernels.h, on a GPU through
// cuda_kernels.h, with the same meaning. All write into tensors they are given; temporaries come
// from the scratch, as many bytes as scratch_sizes.h says. Tensors are dense, of one type unless
// said; T tokens, W width.

#include <ATen/core/Tensor.h>

#include "models/block.h"
#include "models/ops/dropout.h"

namespace ferry::ops {

/** The dropout of one operation of a block in its micro-batch. */
inline Dropout dropout_of(const RandomKey& key, int operation, float p) {
  if (!key.training) return {};
  return {p, key.of(operation), key.on_gpu ? key.on_gpu + operation : nullptr};
}

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
void column_sum(const at::Tensor& x, const at::Tensor& out, Scratch& scratch);

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

/** z = a + residual, y = RMSNorm(z) * weight, with rstd (T) fp32 = 1 / sqrt(mean(z^2) + eps) of
 * each row. Without residual z is a, and undefined here. z or y may be a, z may be residual. */
void residual_rms_norm_forward(const at::Tensor& a,
                               const at::Tensor& residual,
                               const at::Tensor& weight,  // (W)
                               float eps,
                               const at::Tensor& z,
                               at::Tensor& rstd,
                               at::Tensor& y);
/** dz, which is the residual's gradient too, with d_sum (may be undefined) added: the gradient that
 * reaches z past the norm; dweight (W). dz may be dy or d_sum. */
void residual_rms_norm_backward(const at::Tensor& dy,
                                const at::Tensor& z,
                                const at::Tensor& weight,
                                const at::Tensor& rstd,
                                const at::Tensor& d_sum,
                                at::Tensor& dz,
                                at::Tensor& dweight,
                                Scratch& scratch);
/** y again, from the rstd that the forward kept: the same bits. */
void rms_norm_apply(const at::Tensor& z,
                    const at::Tensor& weight,
                    const at::Tensor& rstd,
                    at::Tensor& y);

/** y = dropout(a + bias) + residual; bias may be undefined. y may be a or residual. */
void dropout_residual_forward(const at::Tensor& a,
                              const at::Tensor& bias,
                              const at::Tensor& residual,
                              Dropout dropout,
                              at::Tensor& y);
/** da = dropout'(dy) (undefined without dropout: it is dy) and dbias, its column sum. da may be dy.
 */
void dropout_residual_backward(const at::Tensor& dy,
                               Dropout dropout,
                               const at::Tensor& da,
                               at::Tensor& dbias,
                               Scratch& scratch);

/** Rotary positions (Su et al. 2021) as Hugging Face's Llama has them: in each head of width D,
 * elements (i, i + D / 2) are a pair, turned by position * theta^(-2 i / D), a product of fp32. */
struct Rotary {
  int64_t n_heads = 0;     ///< heads of queries
  int64_t n_kv_heads = 0;  ///< heads of keys, and of values, which are not rotated
  double theta = 10000;
};
/** Rotates in place the queries and keys of qkv (T, (n_heads + 2 n_kv_heads) D), D even and at most
 * 512; position_ids (T) int32 below 2^20. */
void rotary_forward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& qkv);
/** The gradient, likewise in place: turned back. */
void rotary_backward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& d_qkv);

/** out (T, F) = silu(gate) * up, where gate_up (T, 2F) holds gate, then up. */
void silu_gate_forward(const at::Tensor& gate_up, at::Tensor& out);
/** d_gate_up (T, 2F), and out (T, F) again if defined; out may be d_out, d_gate_up gate_up. */
void silu_gate_backward(const at::Tensor& d_out,
                        const at::Tensor& gate_up,
                        at::Tensor& d_gate_up,
                        const at::Tensor& out);

/** sum (T, W) = the three tables' rows of each token; position and type may be undefined. */
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
void dropout(const at::Tensor& x, Dropout dropout, at::Tensor& out);

/** out (n, W) = the rows of x (T, W) that `rows` (>= n int32) names. */
void gather_rows(const at::Tensor& x, const at::Tensor& rows, at::Tensor& out);
/** dx (T, W) = 0 but for the rows that `rows` names: those of d_out (n, W). */
void scatter_rows(const at::Tensor& d_out, const at::Tensor& rows, at::Tensor& dx);

}  // namespace ferry::ops
