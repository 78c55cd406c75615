#include "models/ops/gate/gate_op.h"

#include <fmt/format.h>

namespace ferry::ops {

const OpDef kGate = {
    .name = "gate",
    .values = GateValues<int>::kNames,
    .n_inputs = 1,
    .attributes =
        [](const Op& op) {
          return fmt::format("kind {}", static_cast<int>(op.with<GateAttributes>().kind));
        },
    .remakes_in_backward = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<GateValues>(op);
          GateGrads<int> places = {
              .dy = p.take_grad(v.y), .gate_up = p.data(v.gate_up), .d_gate_up = kNone, .y = kNone};
          places.d_gate_up = p.grad_place(v.gate_up, /*adds=*/false).place;
          places.y = p.by_product(v.y, places.dy);
          p.call(p.op(), Part::backward, places);
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          work.memory_bytes +=
              c.traffic(values_of<GateValues>(c.op).y, call.part == Part::backward ? 6 : 3);
          ++work.n_kernels;
        },
};

}  // namespace ferry::ops
