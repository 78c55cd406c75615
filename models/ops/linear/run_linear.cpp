#include <ATen/ops/sum.h>

#include "models/ops/linear/linear.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/rows/rows.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_linear(const OpCall& c) {
  const auto [w, bias] = c.params<LinearParams>();
  const auto& with = c.op.with<LinearAttributes>();
  if (c.part == Part::forward) {
    const auto o = c.operands<LinearValues>();
    if (o.residual->defined()) return linear_forward_add(o.x, w, o.residual, o.y, with.factor);
    return linear_forward(o.x, w, bias, o.y, with.factor);
  }
  if (c.part == Part::params) {
    const auto o = c.operands<LinearWeightGrads>();
    const auto grads = c.grads<LinearParams>();
    linear_backward_weight(o.dy, o.x, grads.weight, with.factor);
    if (bias->defined() && !with.sums_bias) {
      if (o.dy->is_contiguous())
        column_sum(o.dy, grads.bias, c.scratch);
      else  // a part of a gradient
        at::sum_out(grads.bias, o.dy, 0);
      if (with.factor != 1) grads.bias->mul_(with.factor);
    }
    return;
  }
  const auto o = c.operands<LinearGrads>();
  if (o.sum->defined()) return linear_backward_input_add(o.dy, w, o.sum, o.dx, with.factor);
  linear_backward_input(o.dy, w, o.dx, with.factor);
}

}  // namespace ferry::ops
