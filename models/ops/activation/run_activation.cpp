#include "models/ops/activation/activation.h"
#include "models/ops/activation/activation_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_activation(const OpCall& c) {
  const Activation kind = c.op.with<ActivationAttributes>().kind;
  if (c.part == Part::forward) {
    const auto o = c.operands<ActivationValues>();
    return activation_forward(kind, o.a, c.params<ActivationParams>().bias, o.h, o.g);
  }
  const auto o = c.operands<ActivationGrads>();
  activation_backward(kind, o.dg, o.h, o.dh, c.grads<ActivationParams>().bias, o.g, c.scratch);
}

}  // namespace ferry::ops
