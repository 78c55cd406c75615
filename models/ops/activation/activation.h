#pragma once
// An activation function, with the bias before it.

#include "models/ops/activation_kind.h"
#include "models/ops/operation.h"

namespace ferry::ops {

/** h = a + bias, g = f(h). h may be a. */
struct ActivationForward {
  Extent extent;
  Activation kind{};
  const void* a = nullptr;     // (T, W)
  const void* bias = nullptr;  // (W) or null
  void* h = nullptr;           // (T, W)
  void* g = nullptr;           // (T, W)
};

/** dh = dg * f'(h), dbias its column sum, and f(h) again, for the weight gradient when the forward
 * did not keep it. dh may be dg. Scratch: column_sum_scratch_bytes, none without dbias. */
struct ActivationBackward {
  Extent extent;
  Activation kind{};
  const void* dg = nullptr;  // (T, W)
  const void* h = nullptr;   // (T, W)
  void* dh = nullptr;        // (T, W)
  void* dbias = nullptr;     // (W) or null
  void* g = nullptr;         // (T, W) or null
};

struct ActivationKernels {
  Kernel<ActivationForward> activation_forward;
  Kernel<ActivationBackward> activation_backward;
};
extern const ActivationKernels kCpuActivation, kCudaActivation;

/** The same on tensors, undefined standing for null. */
void activation_forward(
    Activation kind, const at::Tensor& a, const at::Tensor& bias, at::Tensor& h, at::Tensor& g);
void activation_backward(Activation kind,
                         const at::Tensor& dg,
                         const at::Tensor& h,
                         at::Tensor& dh,
                         const at::Tensor& dbias,
                         const at::Tensor& g,
                         Scratch& scratch);

}  // namespace ferry::ops
