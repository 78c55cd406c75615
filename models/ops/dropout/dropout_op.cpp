#include "models/ops/dropout/dropout_op.h"

#include <fmt/format.h>

#include "models/ops/column_sum.h"

namespace ferry::ops {

namespace {

std::string dropout_attributes(const Op& op) {
  const auto& with = op.with<DropoutAttributes>();
  return fmt::format("dropout {} random {}", with.dropout, with.random);
}

}  // namespace

const OpDef kDropout = {
    .name = "dropout",
    .values = DropoutValues<int>::kNames,
    .n_inputs = 1,
    .attributes = dropout_attributes,
    .remake = [](PassPlanner& p, int op) { return p.remake(op); },
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<DropoutValues>(op);
          const int dy = p.take_grad(v.y);
          const int dx = p.grad_place(v.x, /*adds=*/false, {dy}).place;
          p.call(p.op(), Part::backward, DropoutGrads<int>{.dy = dy, .dx = dx});
        },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call&) {
          work.memory_bytes += c.traffic(values_of<DropoutValues>(c.op).y, 2);
          ++work.n_kernels;
        },
};

const OpDef kDropoutResidual = {
    .name = "dropout_residual",
    .values = DropoutResidualValues<int>::kNames,
    .n_inputs = 2,
    .params = DropoutResidualParams<int>::kNames,
    .attributes = dropout_attributes,
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<DropoutResidualValues>(op);
          const int dy = p.take_grad(v.y);
          p.pass_grad(v.residual, dy);
          const int da = p.grad_place(v.a, /*adds=*/false).place;
          p.call(p.op(), Part::backward, DropoutResidualGrads<int>{.dy = dy, .da = da});
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      const bool has_bias = params_of<DropoutResidualParams>(c.op).bias != kNone;
      if (part != Part::backward || !has_bias) return {};
      return {.forward_bytes = column_sum_bytes(c, values_of<DropoutResidualValues>(c.op).y)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const bool is_backward = call.part == Part::backward;
          const bool has_bias = params_of<DropoutResidualParams>(c.op).bias != kNone;
          work.memory_bytes +=
              c.traffic(values_of<DropoutResidualValues>(c.op).y, is_backward ? 2 : 3);
          work.n_kernels += is_backward && has_bias ? 2 : 1;
        },
};

}  // namespace ferry::ops
