#include "models/ops/gate/gate.h"

#include "models/ops/dispatch.h"

namespace ferry::ops {

void gate_forward(Activation kind, const at::Tensor& gate_up, at::Tensor& out) {
  const GateForward its = {
      .extent = extent_of(out), .kind = kind, .gate_up = data_of(gate_up), .out = data_of(out)};
  kernels_for(out, kCpuGate, kCudaGate).gate_forward(its, launch_on(out));
}

void gate_backward(Activation kind,
                   const at::Tensor& d_out,
                   const at::Tensor& gate_up,
                   at::Tensor& d_gate_up,
                   const at::Tensor& out) {
  const GateBackward its = {.extent = extent_of(d_out),
                            .kind = kind,
                            .d_out = data_of(d_out),
                            .gate_up = data_of(gate_up),
                            .d_gate_up = data_of(d_gate_up),
                            .out = data_of(out)};
  kernels_for(d_out, kCpuGate, kCudaGate).gate_backward(its, launch_on(d_out));
}

}  // namespace ferry::ops
