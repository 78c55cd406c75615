#include "models/ops/dora/dora_op.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/ops/column_sum.h"

namespace ferry::ops {
namespace {

/** The matrix whose rows have lengths. */
struct ScaledMatrix {
  MatrixStorage storage;
  int64_t rows = 0, columns = 0;
};

ScaledMatrix scaled_matrix(const OpCase& c) {
  return {c.target.storage_of(params_of<DoraScaleParams>(c.op).weight),
          c.columns(values_of<DoraScaleValues>(c.op).scale),
          c.op.with<DoraScaleAttributes>().columns};
}

}  // namespace

const OpDef kDoraScale = {
    .name = "dora_scale",
    .values = DoraScaleValues<int>::kNames,
    .n_inputs = 1,
    .params = DoraScaleParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<DoraScaleAttributes>();
          std::string text = fmt::format("factor {}, rank {}", with.factor, with.rank);
          for (const LowRankPart& part : with.parts)
            text += fmt::format(", {} rows from {}", part.n, part.first);
          return text;
        },
    .reads_stored = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<DoraScaleValues>(op);
          const int d_scale = p.take_grad(v.scale);
          p.pass_grad(v.before, d_scale);
          if (p.is_trained(params_of<DoraScaleParams>(op).magnitude))
            p.call(p.op(), Part::params,
                   DoraScaleGrads<int>{.d_scale = d_scale, .scale = p.data(v.scale)});
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      if (part != Part::forward) return {};
      const auto& with = c.op.with<DoraScaleAttributes>();
      const ScaledMatrix w = scaled_matrix(c);
      int64_t rows = std::ranges::max(with.parts, {}, &LowRankPart::n).n, tile_bytes = 0;
      if (!w.storage.is_compute()) {
        rows = std::min(rows, tile_rows(w.rows, w.columns, c.target.is_cuda()));
        tile_bytes = c.compute_bytes(rows * w.columns);
      }
      return {.forward_bytes = tile_bytes + c.compute_bytes(rows * with.rank) +
                               c.compute_bytes(with.rank * with.rank)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto& with = c.op.with<DoraScaleAttributes>();
          work.n_kernels += 2;
          if (call.part != Part::forward) return;
          const ScaledMatrix w = scaled_matrix(c);
          for (const LowRankPart& part : with.parts) {
            work.products.push_back({part.n, with.columns, with.rank});
            work.products.push_back({part.n, with.rank, with.rank});
            work.n_kernels += 4;
          }
          work.memory_bytes += stored_bytes(w.storage, w.rows, w.columns, c.target.compute);
          if (w.storage.is_compute()) return;
          work.memory_bytes += c.compute_bytes(w.rows * w.columns);
          work.n_kernels += static_cast<int>(
              4 * ((w.rows - 1) / tile_rows(w.rows, w.columns, c.target.is_cuda())));
        },
};

/** The gradient of y is the gradient of the base, too. */
const OpDef kDora = {
    .name = "dora",
    .values = DoraValues<int>::kNames,
    .n_inputs = 4,
    .params = DoraParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<DoraAttributes>();
          return fmt::format("bias factor {}{}{}", with.bias_factor,
                             with.sums_bias ? ", attention sums the bias" : "",
                             with.n_keys > 0 ? ", keys" : "");
        },
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<DoraValues>(op);
          DoraGrads<int> places = {.dy = p.take_grad(v.y),
                                   .v = p.data(v.v),
                                   .scale = p.data(v.scale),
                                   .dv = kNone,
                                   .d_plain = kNone,
                                   .d_scale = kNone};
          // A forward that is made again drops nothing anew: what came from a dropout is kept.
          if (v.plain != kNone) p.data(v.plain);
          p.pass_grad(v.base, places.dy);
          if (p.is_trained(params_of<DoraParams>(op).bias) && !op.with<DoraAttributes>().sums_bias)
            p.call(p.op(), Part::params, DoraBiasGrads<int>{.dy = places.dy});
          places.d_scale = p.grad_place(v.scale, /*adds=*/false).place;
          places.d_plain = p.grad_place(v.plain, /*adds=*/false).place;
          places.dv = v.plain == kNone ? p.grad_place(v.v, /*adds=*/false, {places.dy}).place
                                       : p.grad_place(v.v, /*adds=*/false).place;
          p.call(p.op(), Part::backward, places);
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      if (part == Part::forward) return {};
      return {.forward_bytes = column_sum_bytes(c, values_of<DoraValues>(c.op).y)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<DoraValues>(c.op);
          const bool has_plain = v.plain != kNone;
          ++work.n_kernels;
          if (call.part == Part::forward) {
            work.memory_bytes += c.traffic(v.y, has_plain ? 4 : 2);
          } else if (call.part == Part::params) {
            work.memory_bytes += c.traffic(v.y, 1);
            ++work.n_kernels;
          } else {
            work.memory_bytes += c.traffic(v.y, has_plain ? 5 : 4);
            work.n_kernels += 2;
          }
        },
};

}  // namespace ferry::ops
