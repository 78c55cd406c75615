#pragma once
// GELU's kernels, the exact (erf) form, with the bias before it.

#include "models/ops/kernel.h"

namespace ferry::ops {

/** h = a + bias, g = gelu(h). h may be a. */
struct GeluForward {
  DType type = DType::f32;
  int64_t T = 0, N = 0;
  const void* a = nullptr;     // (T, N)
  const void* bias = nullptr;  // (N)
  void* h = nullptr;           // (T, N)
  void* g = nullptr;           // (T, N)
};

/** dh = dg * gelu'(h), dbias its column sum, and gelu(h) again, for the weight gradient when the
 * forward did not keep it. dh may be dg. Scratch: column_sum_scratch_bytes. */
struct GeluBackward {
  DType type = DType::f32;
  int64_t T = 0, N = 0;
  const void* dg = nullptr;  // (T, N)
  const void* h = nullptr;   // (T, N)
  void* dh = nullptr;        // (T, N)
  void* dbias = nullptr;     // (N)
  void* g = nullptr;         // (T, N) or null
};

struct GeluKernels {
  Kernel<GeluForward> bias_gelu_forward;
  Kernel<GeluBackward> gelu_backward;
};
namespace cpu {
extern const GeluKernels kGelu;
}
namespace cuda {
extern const GeluKernels kGelu;
}

}  // namespace ferry::ops
