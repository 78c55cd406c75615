#include "models/ops/linear/linear.h"
#include "models/ops/logits/logits_op.h"
#include "models/ops/rows/rows.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_logits(const OpCall& c) {
  const auto [w, bias] = c.params<LogitsParams>();
  const bool by_column = c.op.with<LogitsAttributes>().by_column;
  if (c.part == Part::forward) {
    const auto o = c.operands<LogitsValues>();
    at::Tensor& out = o.logits;
    if (!by_column) return linear_forward_f32(o.x, w, bias, out, c.scratch);
    at::Tensor by_row = c.scratch.take({out.size(1), out.size(0)}, at::kFloat);
    linear_forward_f32(o.x, w, bias, by_row, c.scratch);
    out.copy_(by_row.t());
    return;
  }
  const auto [d_logits, x, dx] = c.operands<LogitsGrads>();
  const auto grads = c.grads<LogitsParams>();
  at::Tensor rounded = d_logits;
  if (by_column) {
    rounded = c.scratch.take({d_logits->size(1), d_logits->size(0)}, x->scalar_type());
    rounded.copy_(d_logits->t());
  } else if (c.target.compute != DType::f32) {
    rounded = c.scratch.take(d_logits->sizes(), x->scalar_type());
    rounded.copy_(d_logits);
  }
  linear_backward_weight(rounded, x, grads.weight);
  // A bias adds the same to all of a sequence's span logits, which softmax does not see: its
  // gradient is zero, and a sum would give it rounding errors that AdamW blows up to full steps.
  if (by_column && grads.bias->defined()) {
    grads.bias->zero_();
  } else if (grads.bias->defined()) {
    column_sum(rounded, grads.bias, c.scratch);
  }
  linear_backward_input(rounded, w, dx);
}

}  // namespace ferry::ops
