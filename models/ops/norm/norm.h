#pragma once
// LayerNorm with what stands before or after it: bias, dropout and residual of a layer's two
// sublayers (dropout_residual_norm), or the embeddings' LayerNorm then dropout (norm_dropout). Rows
// on CUDA: W <= 8192 in f32, 16384 in 16 bits, 2048 where a row is not a multiple of 16 bytes.

#include "models/ops/dropout_mask.h"
#include "models/ops/operation.h"

namespace ferry::ops {

/** dropout_residual_norm: z = dropout(a + bias) + residual, y = LayerNorm(z) * gamma + beta over
 * the rounded z; z or y may be a, z may be residual. norm_dropout: y = dropout(LayerNorm(a) * gamma
 * + beta), without bias, residual and z; y may be a. */
struct NormForward {
  Extent extent;
  float eps = 0;
  Dropout dropout;
  const void* a = nullptr;         // (T, W)
  const void* bias = nullptr;      // (W) or null
  const void* residual = nullptr;  // (T, W) or null
  const void* gamma = nullptr;     // (W)
  const void* beta = nullptr;      // (W)
  void* z = nullptr;               // (T, W)
  float* mean = nullptr;           // (T)
  float* rstd = nullptr;           // (T)
  void* y = nullptr;               // (T, W)
};

/** y = LayerNorm(z) * gamma + beta again, from the moments that the forward kept: the same bits. */
struct NormApply {
  Extent extent;
  const void* z = nullptr;      // (T, W)
  const void* gamma = nullptr;  // (W)
  const void* beta = nullptr;   // (W)
  const float* mean = nullptr;  // (T)
  const float* rstd = nullptr;  // (T)
  void* y = nullptr;            // (T, W)
};

/** dz with d_sum added, the gradient that reaches z past the norm; and the column sums dgamma and
 * dbeta. dz may be dy or d_sum. dropout_residual_norm: dz is the residual's gradient, too; da =
 * dropout'(dz), and its column sum dbias. da may be dy, or null when p == 0 (then it is dz).
 * norm_dropout: without da and dbias. Scratch: norm_backward_scratch_bytes. */
struct NormBackward {
  Extent extent;
  Dropout dropout;
  const void* dy = nullptr;     // (T, W)
  const void* z = nullptr;      // (T, W)
  const float* mean = nullptr;  // (T)
  const float* rstd = nullptr;  // (T)
  const void* gamma = nullptr;  // (W)
  const void* d_sum = nullptr;  // (T, W) or null
  void* dz = nullptr;           // (T, W)
  void* da = nullptr;           // (T, W) or null
  void* dgamma = nullptr;       // (W)
  void* dbeta = nullptr;        // (W)
  void* dbias = nullptr;        // (W) or null
};

struct NormKernels {
  Kernel<NormForward> dropout_residual_norm_forward;
  Kernel<NormForward> norm_dropout_forward;
  Kernel<NormApply> norm_apply;
  Kernel<NormBackward> dropout_residual_norm_backward;
  Kernel<NormBackward> norm_dropout_backward;
};
extern const NormKernels kCpuNorm, kCudaNorm;

struct NormParams;  // norm_params.h, as the next
struct NormState;

/** The same on tensors, undefined standing for null. norm_dropout_forward's z is a of its struct.
 */
void dropout_residual_norm_forward(const at::Tensor& a,
                                   const at::Tensor& bias,
                                   const at::Tensor& residual,
                                   const NormParams& norm,
                                   float eps,
                                   Dropout dropout,
                                   at::Tensor& z,
                                   NormState& state,
                                   at::Tensor& y);
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
void norm_apply(const at::Tensor& z, const NormParams& norm, const NormState& state, at::Tensor& y);
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
                           const at::Tensor& d_sum,
                           Dropout dropout,
                           at::Tensor& dz,
                           NormParams& d_norm,
                           Scratch& scratch);

}  // namespace ferry::ops
