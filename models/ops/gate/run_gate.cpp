#include "models/ops/gate/gate.h"
#include "models/ops/gate/gate_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_gate(const OpCall& c) {
  const Activation kind = c.op.with<GateAttributes>().kind;
  if (c.part == Part::forward) {
    const auto o = c.operands<GateValues>();
    return gate_forward(kind, o.gate_up, o.y);
  }
  const auto o = c.operands<GateGrads>();
  gate_backward(kind, o.dy, o.gate_up, o.d_gate_up, o.y);
}

}  // namespace ferry::ops
