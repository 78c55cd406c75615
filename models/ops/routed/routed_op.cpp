#include "models/ops/routed/routed_op.h"

#include <fmt/format.h>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

std::string routed_attributes(const Op& op) {
  return fmt::format("expert {}", op.with<RoutedAttributes>().expert);
}

bool never_graph(const OpCase&) {
  return false;
}

}  // namespace

const OpDef kTakeRouted = {
    .name = "take_routed",
    .values = TakeRoutedValues<int>::kNames,
    .n_inputs = 3,
    .attributes = routed_attributes,
    .remake = [](PassPlanner& p, int op) { return p.remake(op); },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<TakeRoutedValues>(op);
          TakeRoutedGrads<int> places = {.dy = p.take_grad(v.y), .routes = p.data(v.routes)};
          const auto [dx, sum] = p.grad_place(v.x, /*adds=*/true);
          places.dx = dx;
          places.sum = sum;
          p.call(p.op(), Part::backward, places);
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      const ValueId y = values_of<TakeRoutedValues>(c.op).y;
      if (part != Part::backward) return {};
      return {.forward_bytes = c.compute_bytes(c.rows(y) * c.columns(y))};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          work.memory_bytes += c.traffic(values_of<TakeRoutedValues>(c.op).y, 3);
          work.n_kernels += 2;
          ++work.n_operations;
        },
    .may_be_graph = never_graph,
};

const OpDef kAddRouted = {
    .name = "add_routed",
    .values = AddRoutedValues<int>::kNames,
    .n_inputs = 3,
    .attributes = routed_attributes,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<AddRoutedValues>(op);
          AddRoutedGrads<int> places = {.dy = p.take_grad(v.y),
                                        .x = p.data(v.x),
                                        .routes = p.data(v.routes),
                                        .weights = p.data(v.weights)};
          places.dx = p.grad_place(v.x, /*adds=*/false).place;
          const auto [d_weights, sum] = p.grad_place(v.weights, /*adds=*/true);
          places.d_weights = d_weights;
          places.sum = sum;
          p.call(p.op(), Part::backward, places);
        },
    .scratch = [](const OpCase& c, Part) -> ScratchNeed {
      const ValueId x = values_of<AddRoutedValues>(c.op).x;
      const int64_t n = c.rows(x);
      return {.forward_bytes =
                  2 * c.compute_bytes(n * c.columns(x)) + 2 * stacked_bytes(n * kF32_bytes)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const bool is_backward = call.part == Part::backward;
          work.memory_bytes += c.traffic(values_of<AddRoutedValues>(c.op).x, is_backward ? 7 : 5);
          work.n_kernels += is_backward ? 5 : 3;
          work.n_operations += is_backward ? 5 : 3;
        },
    .may_be_graph = never_graph,
};

}  // namespace ferry::ops
