// The gated activation on the CPU.

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/gate/gate_kernels.h"

namespace ferry::ops::cpu {
namespace {

void silu_gate_forward(const SiluGateForward& its, const Launch&) {
  const RowKernels& kernels = row_kernels();
  const int64_t F = its.F;
  for_row_blocks(its.T, F, [&](int64_t, int64_t begin, int64_t end) {
    Rows in(its.type, 2 * F, its.gate_up), out(its.type, F, its.out);
    for (int64_t t = begin; t < end; t++) {
      const float* gate = in.read(t);
      kernels.silu_gate(out.write(t), gate, gate + F, F);
      out.wrote(t);
    }
  });
}

void silu_gate_backward(const SiluGateBackward& its, const Launch&) {
  const RowKernels& kernels = row_kernels();
  const DType type = its.type;
  const int64_t F = its.F;
  for_row_blocks(its.T, F, [&](int64_t, int64_t begin, int64_t end) {
    Rows d_after(type, F, its.d_out), before(type, 2 * F, its.gate_up);
    Rows d_before(type, 2 * F, its.d_gate_up), after(type, F, its.out);
    for (int64_t t = begin; t < end; t++) {
      const float* gate = before.read(t);
      float* d_gate = d_before.write(t);
      kernels.silu_gate_backward(d_gate, d_gate + F, after.write(t), d_after.read(t), gate,
                                 gate + F, F);
      d_before.wrote(t);
      after.wrote(t);
    }
  });
}

}  // namespace

const GateKernels kGate = {.silu_gate_forward = silu_gate_forward,
                           .silu_gate_backward = silu_gate_backward};

}  // namespace ferry::ops::cpu
