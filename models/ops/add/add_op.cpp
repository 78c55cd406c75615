#include "models/ops/add/add_op.h"

namespace ferry::ops {

/** No call in the backward pass: the gradients of both are the sum's. */
const OpDef kAdd = {
    .name = "add",
    .values = AddValues<int>::kNames,
    .n_inputs = 2,
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<AddValues>(op);
          const int dy = p.take_grad(v.y);
          p.pass_grad(v.a, dy);
          p.pass_grad(v.b, dy);
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          work.memory_bytes += c.traffic(values_of<AddValues>(c.op).y, 3);
          ++work.n_kernels;
        },
};

}  // namespace ferry::ops
