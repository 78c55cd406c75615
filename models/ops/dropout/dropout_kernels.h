#pragma once
// The kernels of dropout alone and of the residual sum that pre-norm layers end with.

#include "models/ops/dropout.h"
#include "models/ops/kernel.h"

namespace ferry::ops {

/** out = dropout(x), on the forward's input as on the backward's gradient. out may be x. */
struct DropoutRows {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
  Dropout dropout;
  const void* x = nullptr;  // (T, W)
  void* out = nullptr;      // (T, W)
};

/** y = dropout(a + bias) + residual. y may be a or residual. */
struct DropoutResidualForward {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
  Dropout dropout;
  const void* a = nullptr;         // (T, W)
  const void* bias = nullptr;      // (W) or null
  const void* residual = nullptr;  // (T, W)
  void* y = nullptr;               // (T, W)
};

/** da = dropout'(dy) and its column sum dbias. da may be dy. Scratch: column_sum_scratch_bytes. */
struct DropoutResidualBackward {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
  Dropout dropout;
  const void* dy = nullptr;  // (T, W)
  void* da = nullptr;        // (T, W), or null when p == 0
  void* dbias = nullptr;     // (W)
};

struct DropoutKernels {
  Kernel<DropoutRows> dropout;
  Kernel<DropoutResidualForward> dropout_residual_forward;
  Kernel<DropoutResidualBackward> dropout_residual_backward;
};
namespace cpu {
extern const DropoutKernels kDropout;
}
namespace cuda {
extern const DropoutKernels kDropout;
}

}  // namespace ferry::ops
