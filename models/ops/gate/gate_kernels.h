#pragma once
// The gated activation's kernels: silu(gate) * up, silu(x) = x / (1 + exp(-x)), of rows that hold
// gate, then up.

#include "models/ops/kernel.h"

namespace ferry::ops {

/** out = silu(gate) * up. */
struct SiluGateForward {
  DType type = DType::f32;
  int64_t T = 0, F = 0;
  const void* gate_up = nullptr;  // (T, 2 F)
  void* out = nullptr;            // (T, F)
};

/** d_gate_up, and out again. out may be d_out, d_gate_up gate_up. */
struct SiluGateBackward {
  DType type = DType::f32;
  int64_t T = 0, F = 0;
  const void* d_out = nullptr;    // (T, F)
  const void* gate_up = nullptr;  // (T, 2 F)
  void* d_gate_up = nullptr;      // (T, 2 F)
  void* out = nullptr;            // (T, F) or null
};

struct GateKernels {
  Kernel<SiluGateForward> silu_gate_forward;
  Kernel<SiluGateBackward> silu_gate_backward;
};
namespace cpu {
extern const GateKernels kGate;
}
namespace cuda {
extern const GateKernels kGate;
}

}  // namespace ferry::ops
