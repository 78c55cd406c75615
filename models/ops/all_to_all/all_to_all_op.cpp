#include "models/ops/all_to_all/all_to_all_op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ferry::ops {

namespace {

/** Tokens of a rank. */
int64_t rows_of_rank(const OpCase& c) {
  const auto v = values_of<AllToAllValues>(c.op);
  return c.rows(c.op.with<AllToAllAttributes>().to_heads ? v.x : v.y);
}

}  // namespace

const OpDef kAllToAll = {
    .name = "all_to_all",
    .values = AllToAllValues<int>::kNames,
    .n_inputs = 1,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<AllToAllAttributes>();
          std::vector<std::string> parts;
          for (const SharedHeads& part : with.parts)
            parts.push_back(fmt::format("{} by {}", part.columns, part.head_width));
          return fmt::format("to {} of {} ranks, columns {}", with.to_heads ? "heads" : "tokens",
                             with.n_ranks, fmt::join(parts, ", "));
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
      const auto& with = c.op.with<AllToAllAttributes>();
      return {.forward_bytes =
                  with.n_ranks * stacked_bytes(c.compute_bytes(rows_of_rank(c) * with.n_own()))};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          const auto& with = c.op.with<AllToAllAttributes>();
          const int64_t n_bytes = c.compute_bytes(rows_of_rank(c) * with.n_own());
          work.exchanged_bytes += n_bytes * (with.n_ranks - 1);
          work.memory_bytes += 4 * n_bytes * with.n_ranks;
          const auto n_copies = with.n_ranks * static_cast<int>(with.parts.size()) + 1;
          work.n_kernels += n_copies + 1;
          work.n_operations += n_copies;
        },
    // Ranks that record a graph would not meet those that do not.
    .may_be_graph = [](const OpCase&) { return false; },
};

}  // namespace ferry::ops
