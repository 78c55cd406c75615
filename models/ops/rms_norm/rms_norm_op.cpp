#include "models/ops/rms_norm/rms_norm_op.h"

#include <fmt/format.h>

#include "models/ops/add/add_op.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

/** The value that is normalised. */
ValueId normalised(const RmsNormValues<ValueId>& v) {
  return v.z == kNone ? v.a : v.z;
}

}  // namespace

const OpDef kRmsNorm = {
    .name = "rms_norm",
    .values = RmsNormValues<int>::kNames,
    .n_inputs = 2,
    .params = RmsNormParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<RmsNormAttributes>();
          return fmt::format("eps {} weight_offset {}", with.eps, with.weight_offset);
        },
    .states = [](const OpCase& c) -> std::vector<SavedSpec> {
      const Value& y = c.program.value(values_of<RmsNormValues>(c.op).y);
      return {{y.name + ".rstd", {rows_of(y.rows, c.shape)}, DType::f32}};
    },
    .remake =
        [](PassPlanner& p, int op) {
          const auto v = values_of<RmsNormValues>(p.program().op(op));
          RmsNormRemake<int> places = {.z = p.data(normalised(v)), .y = kNone};
          std::vector<int> states = p.states(op);
          places.y = p.temp_like(v.y);
          p.call(op, Part::remake, places, std::move(states));
          return places.y;
        },
    .in_place = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<RmsNormValues>(op);
          const int dy = p.take_grad(v.y);
          const int d_sum = v.z == kNone ? kNone : p.take_grad(v.z);
          const int z = p.data(normalised(v));
          std::vector<int> states = p.states(p.op());
          RmsNormGrads<int> places = {.dy = dy, .z = z, .sum = d_sum, .dz = kNone};
          if (v.z == kNone) {
            const auto [dz, sum] = p.grad_place(v.a, /*adds=*/true, {dy});
            places.dz = dz;
            places.sum = sum;
          } else {
            // The gradient of the sum is that of both.
            places.dz = p.grad_place(v.residual, /*adds=*/false, {d_sum, dy}).place;
            p.pass_grad(v.a, places.dz);
          }
          p.call(p.op(), Part::backward, places, std::move(states));
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      if (part != Part::backward) return {};
      const ValueId y = values_of<RmsNormValues>(c.op).y;
      return {.forward_bytes = stacked_bytes(
                  rms_norm_backward_scratch_bytes(c.rows(y), c.columns(y), c.target.is_cuda()))};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<RmsNormValues>(c.op);
          const bool is_backward = call.part == Part::backward;
          const int n_rows = call.part == Part::remake ? 2 : is_backward || v.z != kNone ? 4 : 2;
          work.memory_bytes += c.traffic(v.y, n_rows);
          work.n_kernels += is_backward ? 2 : 1;
        },
    .compose =
        [](Composition& into, const Op& op) {
          auto v = values_of<RmsNormValues>(op);
          if (v.z == kNone) return void(into.ops.push_back(op));
          into.ops.push_back(
              make_op(kAdd, AddValues<ValueId>{.a = v.a, .b = v.residual, .y = v.z}));
          into.ops.push_back(make_op(
              kRmsNorm, RmsNormValues<ValueId>{.a = v.z, .residual = kNone, .z = kNone, .y = v.y},
              params_of<RmsNormParams>(op), op.attributes));
        },
};

}  // namespace ferry::ops
