#pragma once
// The gated activation on tensors, which are dense and of one type.

#include <ATen/core/Tensor.h>

namespace ferry::ops {

/** out (T, F) = silu(gate) * up, where gate_up (T, 2F) holds gate, then up. */
void silu_gate_forward(const at::Tensor& gate_up, at::Tensor& out);
/** d_gate_up (T, 2F), and out (T, F) again if defined; out may be d_out, d_gate_up gate_up. */
void silu_gate_backward(const at::Tensor& d_out,
                        const at::Tensor& gate_up,
                        at::Tensor& d_gate_up,
                        const at::Tensor& out);

}  // namespace ferry::ops
