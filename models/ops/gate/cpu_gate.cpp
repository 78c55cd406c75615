// The gated activation on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/gate/gate.h"

namespace ferry::ops::cpu {
namespace {

void gate_forward(const GateForward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const auto forward = row_kernels().gate[static_cast<size_t>(its.kind)];
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(type, 2 * W, its.gate_up), out(type, W, its.out);
    for (int64_t t = begin; t < end; t++) {
      const float* gate = in.read(t);
      forward(out.write(t), gate, gate + W, W);
      out.wrote(t);
    }
  });
}

void gate_backward(const GateBackward& its, const Launch&) {
  const auto [type, T, W] = its.extent;
  const auto backward = row_kernels().gate_backward[static_cast<size_t>(its.kind)];
  for_row_blocks(T, W, [&](int64_t, int64_t begin, int64_t end) {
    Rows d_after(type, W, its.d_out), before(type, 2 * W, its.gate_up);
    Rows d_before(type, 2 * W, its.d_gate_up), after(type, W, its.out);
    for (int64_t t = begin; t < end; t++) {
      const float* gate = before.read(t);
      float* d_gate = d_before.write(t);
      backward(d_gate, d_gate + W, after.write(t), d_after.read(t), gate, gate + W, W);
      d_before.wrote(t);
      after.wrote(t);
    }
  });
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::GateKernels ferry::ops::kCpuGate = {.gate_forward = cpu::gate_forward,
                                                      .gate_backward = cpu::gate_backward};
