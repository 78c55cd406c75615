#include "models/ops/gate/gate.h"

#include "models/ops/dispatch.h"

namespace ferry::ops {

void silu_gate_forward(const at::Tensor& gate_up, at::Tensor& out) {
  const SiluGateForward its = {
      .extent = extent_of(out), .gate_up = data_of(gate_up), .out = data_of(out)};
  kernels_for(out).silu_gate_forward(its, launch_on(out));
}

void silu_gate_backward(const at::Tensor& d_out,
                        const at::Tensor& gate_up,
                        at::Tensor& d_gate_up,
                        const at::Tensor& out) {
  const SiluGateBackward its = {.extent = extent_of(d_out),
                                .d_out = data_of(d_out),
                                .gate_up = data_of(gate_up),
                                .d_gate_up = data_of(d_gate_up),
                                .out = data_of(out)};
  kernels_for(d_out).silu_gate_backward(its, launch_on(d_out));
}

}  // namespace ferry::ops
