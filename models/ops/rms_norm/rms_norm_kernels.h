#pragma once
// RMSNorm's kernels, with the residual sum before it. Widths as in norm_kernels.h.

#include "models/ops/kernel.h"

namespace ferry::ops {

/** z = a + residual, y = z * rstd * weight with rstd = 1 / sqrt(mean(z^2) + eps), over the rounded
 * z. z or y may be a, z may be residual. */
struct RmsNormForward {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
  float eps = 0;
  const void* a = nullptr;         // (T, W)
  const void* residual = nullptr;  // (T, W) or null
  const void* weight = nullptr;    // (W)
  void* z = nullptr;               // (T, W), or null without residual: z is a
  float* rstd = nullptr;           // (T)
  void* y = nullptr;               // (T, W)
};

/** y again, from the rstd that the forward kept: the same bits. */
struct RmsNormApply {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
  const void* z = nullptr;       // (T, W)
  const void* weight = nullptr;  // (W)
  const float* rstd = nullptr;   // (T)
  void* y = nullptr;             // (T, W)
};

/** dz, which is the residual's gradient too, with d_sum added, and the column sum dweight. dz may
 * be dy or d_sum. Scratch: rms_norm_backward_scratch_bytes. */
struct RmsNormBackward {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
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
namespace cpu {
extern const RmsNormKernels kRmsNorm;
}
namespace cuda {
extern const RmsNormKernels kRmsNorm;
}

}  // namespace ferry::ops
