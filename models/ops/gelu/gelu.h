#pragma once
// GELU, the exact (erf) form, with the bias before it.

#include "models/ops/operation.h"

namespace ferry::ops {

/** h = a + bias, g = gelu(h). h may be a. */
struct GeluForward {
  Extent extent;
  const void* a = nullptr;     // (T, W)
  const void* bias = nullptr;  // (W)
  void* h = nullptr;           // (T, W)
  void* g = nullptr;           // (T, W)
};

/** dh = dg * gelu'(h), dbias its column sum, and gelu(h) again, for the weight gradient when the
 * forward did not keep it. dh may be dg. Scratch: column_sum_scratch_bytes. */
struct GeluBackward {
  Extent extent;
  const void* dg = nullptr;  // (T, W)
  const void* h = nullptr;   // (T, W)
  void* dh = nullptr;        // (T, W)
  void* dbias = nullptr;     // (W)
  void* g = nullptr;         // (T, W) or null
};

struct GeluKernels {
  Kernel<GeluForward> bias_gelu_forward;
  Kernel<GeluBackward> gelu_backward;
};
extern const GeluKernels kCpuGelu, kCudaGelu;

/** The same on tensors, undefined standing for null. */
void bias_gelu_forward(const at::Tensor& a, const at::Tensor& bias, at::Tensor& h, at::Tensor& g);
void gelu_backward(const at::Tensor& dg,
                   const at::Tensor& h,
                   at::Tensor& dh,
                   at::Tensor& dbias,
                   const at::Tensor& g,
                   Scratch& scratch);

}  // namespace ferry::ops
