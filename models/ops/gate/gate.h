#pragma once
// The gated activation f(gate) * up of rows that hold gate, then up (Shazeer 2020): SwiGLU with
// SiLU, GEGLU with GELU.

#include "models/ops/activation_kind.h"
#include "models/ops/operation.h"

namespace ferry::ops {

/** out = f(gate) * up. */
struct GateForward {
  Extent extent;
  Activation kind = Activation::silu;
  const void* gate_up = nullptr;  // (T, 2 W)
  void* out = nullptr;            // (T, W)
};

/** d_gate_up, and out again. out may be d_out, d_gate_up gate_up. */
struct GateBackward {
  Extent extent;
  Activation kind = Activation::silu;
  const void* d_out = nullptr;    // (T, W)
  const void* gate_up = nullptr;  // (T, 2 W)
  void* d_gate_up = nullptr;      // (T, 2 W)
  void* out = nullptr;            // (T, W) or null
};

struct GateKernels {
  Kernel<GateForward> gate_forward;
  Kernel<GateBackward> gate_backward;
};
extern const GateKernels kCpuGate, kCudaGate;

/** The same on tensors, undefined standing for null. */
void gate_forward(Activation kind, const at::Tensor& gate_up, at::Tensor& out);
void gate_backward(Activation kind,
                   const at::Tensor& d_out,
                   const at::Tensor& gate_up,
                   at::Tensor& d_gate_up,
                   const at::Tensor& out);

}  // namespace ferry::ops
