#include "models/ops/all_to_all/all_to_all_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ferry::ops {

const OpDef kAllToAll = {
    .name = "all_to_all",
    .values = AllToAllValues<int>::kNames,
    .n_inputs = 1,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<AllToAllAttributes>();
          return fmt::format("to {} of {} ranks, parts of {} columns",
                             with.to_heads ? "heads" : "tokens", with.n_ranks,
                             fmt::join(with.parts, ", "));
        },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<AllToAllValues>(op);
          const int dy = p.take_grad(v.y);
          const int dx = p.grad_place(v.x, /*adds=*/false).place;
          p.call(p.op(), Part::backward, AllToAllGrads<int>{.dy = dy, .dx = dx});
        },
    // The columns of each rank's heads lie together there.
    .scratch = [](const OpCase& c, Part) -> ScratchNeed {
      const ValueId x = values_of<AllToAllValues>(c.op).x;
      const int64_t n_ranks = c.op.with<AllToAllAttributes>().n_ranks;
      return {.forward_bytes =
                  n_ranks * stacked_bytes(c.compute_bytes(c.rows(x) * c.columns(x) / n_ranks))};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          const auto& with = c.op.with<AllToAllAttributes>();
          const ValueId x = values_of<AllToAllValues>(c.op).x;
          const int64_t n_bytes = c.compute_bytes(c.rows(x) * c.columns(x));
          work.exchanged_bytes += n_bytes / with.n_ranks * (with.n_ranks - 1);
          work.memory_bytes += c.traffic(x, 4);
          const auto n_copies = with.n_ranks * static_cast<int>(with.parts.size()) + 1;
          work.n_kernels += n_copies + 1;
          work.n_operations += n_copies;
        },
    // Ranks that record a graph would not meet those that do not.
    .may_be_graph = [](const OpCase&) { return false; },
};

}  // namespace ferry::ops
