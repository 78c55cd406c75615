#include "models/ops/dropout/dropout_op.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

Dropout dropout_of_call(const OpCall& c, const at::Tensor& y) {
  const auto& with = c.op.with<DropoutAttributes>();
  return ops::dropout_of(c.key, with.random, with.dropout, y.size(1));
}

/** y = dropout(x), which may lie in one place. */
void drop(const OpCall& c, const at::Tensor& x, at::Tensor& y) {
  if (const Dropout its = dropout_of_call(c, y); its.p > 0) return dropout(x, its, y);
  if (y.const_data_ptr() != x.const_data_ptr()) y.copy_(x);
}

}  // namespace

void run_dropout(const OpCall& c) {
  if (c.part == Part::backward) {
    const auto o = c.operands<DropoutGrads>();
    return drop(c, o.dy, o.dx);
  }
  const auto o = c.operands<DropoutValues>();
  drop(c, o.x, o.y);
}

void run_dropout_residual(const OpCall& c) {
  if (c.part == Part::forward) {
    const auto o = c.operands<DropoutResidualValues>();
    return dropout_residual_forward(o.a, c.params<DropoutResidualParams>().bias, o.residual,
                                    dropout_of_call(c, o.y), o.y);
  }
  const auto o = c.operands<DropoutResidualGrads>();
  if (params_of<DropoutResidualParams>(c.op).bias == kNone) return drop(c, o.dy, o.da);
  dropout_residual_backward(o.dy, dropout_of_call(c, o.dy), o.da,
                            c.grads<DropoutResidualParams>().bias, c.scratch);
}

}  // namespace ferry::ops
