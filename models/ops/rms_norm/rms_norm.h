#pragma once
// RMSNorm (Zhang and Sennrich 2019), with the residual sum before it. Widths on CUDA as in norm.h.
// Weights may count from one (Gemma), which the offset says.

#include "models/ops/operation.h"

namespace ferry::ops {

/** z = a + residual, y = z * rstd * (weight + weight_offset) with rstd = 1 / sqrt(mean(z^2) + eps),
 * over the rounded z. z or y may be a, z may be residual. */
struct RmsNormForward {
  Extent extent;
  float eps = 0;
  float weight_offset = 0;
  const void* a = nullptr;         // (T, W)
  const void* residual = nullptr;  // (T, W) or null
  const void* weight = nullptr;    // (W)
  void* z = nullptr;               // (T, W), or null without residual: z is a
  float* rstd = nullptr;           // (T)
  void* y = nullptr;               // (T, W)
};

/** y again, from the rstd that the forward kept: the same bits. */
struct RmsNormApply {
  Extent extent;
  float weight_offset = 0;
  const void* z = nullptr;       // (T, W)
  const void* weight = nullptr;  // (W)
  const float* rstd = nullptr;   // (T)
  void* y = nullptr;             // (T, W)
};

/** dz, which is the residual's gradient too, with d_sum added, the gradient that reaches z past the
 * norm; and the column sum dweight. dz may be dy or d_sum. Scratch:
 * rms_norm_backward_scratch_bytes. */
struct RmsNormBackward {
  Extent extent;
  float weight_offset = 0;
  const void* dy = nullptr;      // (T, W)
  const void* z = nullptr;       // (T, W)
  const float* rstd = nullptr;   // (T)
  const void* weight = nullptr;  // (W)
  const void* d_sum = nullptr;   // (T, W) or null
  void* dz = nullptr;            // (T, W)
  void* dweight = nullptr;       // (W)
};

struct RmsNormKernels {
  Kernel<RmsNormForward> residual_rms_norm_forward;
  Kernel<RmsNormApply> rms_norm_apply;
  Kernel<RmsNormBackward> residual_rms_norm_backward;
};
extern const RmsNormKernels kCpuRmsNorm, kCudaRmsNorm;

/** The same on tensors, undefined standing for null; rstd is fp32. */
void residual_rms_norm_forward(const at::Tensor& a,
                               const at::Tensor& residual,
                               const at::Tensor& weight,
                               float eps,
                               const at::Tensor& z,
                               at::Tensor& rstd,
                               at::Tensor& y,
                               float weight_offset = 0);
void residual_rms_norm_backward(const at::Tensor& dy,
                                const at::Tensor& z,
                                const at::Tensor& weight,
                                const at::Tensor& rstd,
                                const at::Tensor& d_sum,
                                at::Tensor& dz,
                                at::Tensor& dweight,
                                Scratch& scratch,
                                float weight_offset = 0);
void rms_norm_apply(const at::Tensor& z,
                    const at::Tensor& weight,
                    const at::Tensor& rstd,
                    at::Tensor& y,
                    float weight_offset = 0);

}  // namespace ferry::ops
