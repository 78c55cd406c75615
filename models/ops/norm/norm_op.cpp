#include "models/ops/norm/norm_op.h"

#include <fmt/format.h>

#include "models/ops/dropout/dropout_op.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

std::vector<SavedSpec> norm_states(const OpCase& c) {
  const Value& y = c.program.value(c.op.out.back());
  const int64_t rows = rows_of(y.rows, c.shape);
  return {{y.name + ".mean", {rows}, DType::f32}, {y.name + ".rstd", {rows}, DType::f32}};
}

ScratchNeed norm_scratch(const OpCase& c, Part part) {
  if (part != Part::backward) return {};
  const ValueId y = c.op.out.back();
  return {.forward_bytes = stacked_bytes(
              norm_backward_scratch_bytes(c.rows(y), c.columns(y), c.target.is_cuda()))};
}

std::string norm_attributes(const Op& op) {
  const auto& with = op.with<NormAttributes>();
  return fmt::format("eps {} dropout {} random {}", with.eps, with.dropout, with.random);
}

}  // namespace

const OpDef kNorm = {
    .name = "norm",
    .values = NormValues<int>::kNames,
    .n_inputs = 1,
    .params = LayerNormParams<int>::kNames,
    .attributes = norm_attributes,
    .states = norm_states,
    .remake = [](PassPlanner& p, int op) { return p.remake(op); },
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<NormValues>(op);
          const int dy = p.take_grad(v.y), z = p.data(v.z);
          std::vector<int> states = p.states(p.op());
          const auto [dz, sum] = p.grad_place(v.z, /*adds=*/true, {dy});
          p.call(p.op(), Part::backward, NormGrads<int>{.dy = dy, .z = z, .sum = sum, .dz = dz},
                 std::move(states));
        },
    .scratch = norm_scratch,
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const bool is_backward = call.part == Part::backward;
          work.memory_bytes += c.traffic(values_of<NormValues>(c.op).y, is_backward ? 4 : 2);
          work.n_kernels += is_backward ? 2 : 1;
        },
};

const OpDef kResidualNorm = {
    .name = "residual_norm",
    .values = ResidualNormValues<int>::kNames,
    .n_inputs = 2,
    .params = ResidualNormParams<int>::kNames,
    .attributes = norm_attributes,
    .states = norm_states,
    .remake =
        [](PassPlanner& p, int op) {
          const auto v = values_of<ResidualNormValues>(p.program().op(op));
          NormValues<int> places = {.z = p.data(v.z), .y = kNone};
          std::vector<int> states = p.states(op);
          places.y = p.temp_like(v.y);
          p.call(op, Part::remake, places, std::move(states));
          return places.y;
        },
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<ResidualNormValues>(op);
          const int dy = p.take_grad(v.y), d_sum = p.take_grad(v.z), z = p.data(v.z);
          std::vector<int> states = p.states(p.op());
          // The gradient of the sum is the residual's, and but for dropout that of what was added.
          const int dz = p.grad_place(v.residual, /*adds=*/false, {d_sum, dy}).place;
          const int da = p.grad_place(v.a, /*adds=*/false).place;
          p.call(p.op(), Part::backward,
                 ResidualNormGrads<int>{.dy = dy, .z = z, .d_sum = d_sum, .dz = dz, .da = da},
                 std::move(states));
        },
    .scratch = norm_scratch,
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const int n_rows = call.part == Part::remake ? 2 : 4;
          work.memory_bytes += c.traffic(values_of<ResidualNormValues>(c.op).y, n_rows);
          work.n_kernels += call.part == Part::backward ? 3 : 1;
        },
    .compose =
        [](Composition& into, const Op& op) {
          const auto v = values_of<ResidualNormValues>(op);
          const auto params = params_of<ResidualNormParams>(op);
          auto with = op.with<NormAttributes>();
          into.ops.push_back(
              make_op(kDropoutResidual,
                      DropoutResidualValues<ValueId>{.a = v.a, .residual = v.residual, .y = v.z},
                      DropoutResidualParams<ParamId>{.bias = params.bias_of_a},
                      DropoutAttributes{.dropout = with.dropout, .random = with.random}));
          with.dropout = 0;
          into.ops.push_back(make_op(
              kNorm, NormValues<ValueId>{.z = v.z, .y = v.y},
              LayerNormParams<ParamId>{.weight = params.weight, .bias = params.bias}, with));
        },
};

}  // namespace ferry::ops
