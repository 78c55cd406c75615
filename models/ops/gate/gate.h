#pragma once
// The gated activation silu(gate) * up, silu(x) = x / (1 + exp(-x)), of rows that hold gate, then
// up.

#include "models/ops/operation.h"

namespace ferry::ops {

/** out = silu(gate) * up. */
struct SiluGateForward {
  Extent extent;
  const void* gate_up = nullptr;  // (T, 2 W)
  void* out = nullptr;            // (T, W)
};

/** d_gate_up, and out again. out may be d_out, d_gate_up gate_up. */
struct SiluGateBackward {
  Extent extent;
  const void* d_out = nullptr;    // (T, W)
  const void* gate_up = nullptr;  // (T, 2 W)
  void* d_gate_up = nullptr;      // (T, 2 W)
  void* out = nullptr;            // (T, W) or null
};

struct GateKernels {
  Kernel<SiluGateForward> silu_gate_forward;
  Kernel<SiluGateBackward> silu_gate_backward;
};
extern const GateKernels kCpuGate, kCudaGate;

/** The same on tensors, undefined standing for null. */
void silu_gate_forward(const at::Tensor& gate_up, at::Tensor& out);
void silu_gate_backward(const at::Tensor& d_out,
                        const at::Tensor& gate_up,
                        at::Tensor& d_gate_up,
                        const at::Tensor& out);

}  // namespace ferry::ops
