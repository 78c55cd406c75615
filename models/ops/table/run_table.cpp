#include "models/ops/run.h"
#include "models/ops/table/table_op.h"

namespace ferry::ops {

void run_table(const OpCall& c) {
  if (c.part == Part::forward) {
    c.operands<TableValues>().y->copy_(c.params<TableParams>().table);
    return;
  }
  if (at::Tensor& grad = c.grads<TableParams>().table; grad.defined())
    grad.copy_(c.operands<TableGrads>().dy);
}

}  // namespace ferry::ops
