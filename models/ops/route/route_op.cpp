#include "models/ops/route/route_op.h"

#include <fmt/format.h>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

/** Tensors of a row for each token and expert, and of one for each route: those of
 * run_route.cpp. LibTorch's sort takes memory of its own. */
ScratchNeed route_scratch(const OpCase& c, Part) {
  const auto& with = c.op.with<RouteAttributes>();
  const int64_t tokens = c.rows(values_of<RouteValues>(c.op).logits);
  constexpr int64_t kIndex_bytes = 8, kSort_bytes = 1 << 20;
  const int64_t by_expert = stacked_bytes(tokens * with.n_experts * kF32_bytes),
                by_route = stacked_bytes(tokens * with.k * kIndex_bytes),
                few = stacked_bytes((with.n_experts + 1) * kIndex_bytes);
  return {.forward_bytes = 6 * by_expert + 8 * by_route + 6 * few,
          .library_bytes = 4 * by_route + kSort_bytes};
}

}  // namespace

const OpDef kRoute = {
    .name = "route",
    .values = RouteValues<int>::kNames,
    .n_inputs = 1,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<RouteAttributes>();
          return fmt::format("{} of {} balance {}", with.k, with.n_experts, with.balance);
        },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<RouteValues>(op);
          RouteGrads<int> places = {.logits = p.data(v.logits),
                                    .d_weights = p.take_grad(v.weights)};
          places.d_logits = p.grad_place(v.logits, /*adds=*/false).place;
          p.call(p.op(), Part::backward, places);
        },
    .scratch = route_scratch,
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          const auto& with = c.op.with<RouteAttributes>();
          const auto n = c.rows(values_of<RouteValues>(c.op).logits);
          work.memory_bytes += n * (8 * with.n_experts + 16 * with.k) * kF32_bytes;
          work.n_kernels += 20;
          work.n_operations += 20;
        },
    .may_be_graph = [](const OpCase&) { return false; },
};

}  // namespace ferry::ops
