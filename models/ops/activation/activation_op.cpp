#include "models/ops/activation/activation_op.h"

#include <fmt/format.h>

#include "models/ops/column_sum.h"

namespace ferry::ops {

const OpDef kActivation = {
    .name = "activation",
    .values = ActivationValues<int>::kNames,
    .n_inputs = 1,
    .params = ActivationParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          return fmt::format("kind {}", static_cast<int>(op.with<ActivationAttributes>().kind));
        },
    .remakes_in_backward = true,
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<ActivationValues>(op);
          const int dg = p.take_grad(v.g), h = p.data(v.h);
          const int dh = p.grad_place(v.a, /*adds=*/false, {dg}).place;
          p.call(p.op(), Part::backward,
                 ActivationGrads<int>{.dg = dg, .h = h, .dh = dh, .g = p.by_product(v.g)});
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      const bool has_bias = params_of<ActivationParams>(c.op).bias != kNone;
      if (part != Part::backward || !has_bias) return {};
      return {.forward_bytes = column_sum_bytes(c, values_of<ActivationValues>(c.op).h)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const bool is_backward = call.part == Part::backward;
          const bool has_bias = params_of<ActivationParams>(c.op).bias != kNone;
          work.memory_bytes += c.traffic(values_of<ActivationValues>(c.op).h, is_backward ? 4 : 3);
          work.n_kernels += is_backward && has_bias ? 2 : 1;
        },
};

}  // namespace ferry::ops
