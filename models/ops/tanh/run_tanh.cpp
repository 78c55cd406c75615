#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>

#include "models/ops/run.h"
#include "models/ops/tanh/tanh_op.h"

namespace ferry::ops {

void run_tanh(const OpCall& c) {
  if (c.part == Part::forward) {
    const auto o = c.operands<TanhValues>();
    at::tanh_out(o.y, o.x);
    return;
  }
  const auto o = c.operands<TanhGrads>();
  at::tanh_backward_out(o.dx, o.dy, o.y);
}

}  // namespace ferry::ops
