#include "models/ops/low_rank/low_rank_op.h"

#include <fmt/format.h>

namespace ferry::ops {

/** The gradient of y is the gradient of the base, too. */
const OpDef kLowRank = {
    .name = "low_rank",
    .values = LowRankValues<int>::kNames,
    .n_inputs = 2,
    .params = LowRankParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<LowRankAttributes>();
          std::string text = fmt::format("factor {}", with.factor);
          for (const LowRankPart& part : with.parts)
            text += fmt::format(", {} columns from {}", part.n, part.first);
          return text;
        },
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<LowRankValues>(op);
          const int index = p.op(), dy = p.take_grad(v.y);
          p.pass_grad(v.base, dy);
          p.when_there(v.h, dy, [&p, index, dy](int h) {
            p.call(index, Part::params, LowRankWeightGrads<int>{.dy = dy, .h = h});
          });
          const int dh = p.grad_place(v.h, /*adds=*/false).place;
          p.call(index, Part::backward, LowRankGrads<int>{.dy = dy, .dh = dh});
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<LowRankValues>(c.op);
          const auto& parts = c.op.with<LowRankAttributes>().parts;
          const int64_t rows = c.worked_rows(v.h),
                        rank = c.columns(v.h) / static_cast<int64_t>(parts.size());
          for (const LowRankPart& part : parts) {
            ++work.n_kernels;
            if (call.part == Part::params)
              work.products.push_back({part.n, rows, rank});
            else if (call.part == Part::backward)
              work.products.push_back({rows, part.n, rank});
            else
              work.products.push_back({rows, rank, part.n});
          }
          if (call.part == Part::forward) work.memory_bytes += c.traffic(v.y, 2);
        },
};

}  // namespace ferry::ops
