#include "models/ops/tanh/tanh_op.h"

namespace ferry::ops {

const OpDef kTanh = {
    .name = "tanh",
    .values = TanhValues<int>::kNames,
    .n_inputs = 1,
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<TanhValues>(op);
          const int dy = p.take_grad(v.y), y = p.data(v.y);
          const int dx = p.grad_place(v.x, /*adds=*/false, {dy}).place;
          p.call(p.op(), Part::backward, TanhGrads<int>{.dy = dy, .y = y, .dx = dx});
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          work.memory_bytes += c.traffic(values_of<TanhValues>(c.op).y, 3);
          ++work.n_kernels;
          ++work.n_operations;
        },
};

}  // namespace ferry::ops
