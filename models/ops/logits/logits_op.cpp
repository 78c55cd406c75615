#include "models/ops/logits/logits_op.h"

#include "models/ops/column_sum.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

const OpDef kLogits = {
    .name = "logits",
    .values = LogitsValues<int>::kNames,
    .n_inputs = 1,
    .params = LogitsParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          return std::string(op.with<LogitsAttributes>().by_column ? "by column" : "");
        },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<LogitsValues>(op);
          const int dy = p.take_grad(v.logits), x = p.data(v.x);
          const int dx = p.grad_place(v.x, /*adds=*/false).place;
          p.call(p.op(), Part::backward, LogitsGrads<int>{.d_logits = dy, .x = x, .dx = dx});
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      const ValueId logits = values_of<LogitsValues>(c.op).logits;
      const Value& out = c.program.value(logits);
      const int64_t n = c.rows(logits) * out.columns;
      // Logits by column are turned round; those of 16 bits are rounded.
      const int64_t rounded = c.target.compute == DType::f32 ? 0 : c.compute_bytes(n);
      if (part == Part::forward)
        return {.forward_bytes = rounded + (out.by_column ? stacked_bytes(n * kF32_bytes) : 0)};
      if (out.by_column) return {.forward_bytes = c.compute_bytes(n)};
      return {.forward_bytes = rounded + column_sum_bytes(c, logits)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<LogitsValues>(c.op);
          const bool is_backward = call.part == Part::backward;
          work.add_linear(is_backward, c.rows(v.x), c.columns(v.x), c.columns(v.logits));
          work.memory_bytes += c.traffic(v.x, 2);
          work.n_kernels += is_backward ? 5 : 2;
          work.n_operations += is_backward ? 3 : 1;
        },
};

}  // namespace ferry::ops
