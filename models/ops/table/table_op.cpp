#include "models/ops/table/table_op.h"

namespace ferry::ops {

const OpDef kTable = {
    .name = "table",
    .values = TableValues<int>::kNames,
    .params = TableParams<int>::kNames,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const int dy = p.take_grad(values_of<TableValues>(op).y);
          p.call(p.op(), Part::backward, TableGrads<int>{.dy = dy});
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          work.memory_bytes += c.traffic(values_of<TableValues>(c.op).y, 2);
          ++work.n_kernels;
        },
};

}  // namespace ferry::ops
