#include "models/ops/linear/linear_op.h"

#include <fmt/format.h>

#include <utility>

#include "models/ops/add/add_op.h"
#include "models/ops/column_sum.h"

namespace ferry::ops {
namespace {

/** The weight of a linear map. */
struct StoredWeight {
  MatrixStorage storage;
  int64_t rows = 0, columns = 0;
};

StoredWeight weight_of(const OpCase& c) {
  const auto v = values_of<LinearValues>(c.op);
  return {c.target.storage_of(params_of<LinearParams>(c.op).weight), c.columns(v.y),
          c.columns(v.x)};
}

/** Adds the bytes of a stored weight that a call reads, and of the tiles that it makes of them. */
void add_tiles(BlockWork& work, const OpCase& c, Part part) {
  const StoredWeight w = weight_of(c);
  if (w.storage.is_compute()) return;
  const StoredParts parts = stored_parts(w.storage, w.rows, w.columns, c.target.compute);
  // A tile of whole rows is of one part, as a rule, and a tile of columns of all.
  const bool is_forward = part == Part::forward;
  const bool cuda = c.target.is_cuda();
  const int64_t n_tiles = is_forward ? (w.rows - 1) / tile_rows(w.rows, w.columns, cuda) + 1
                                     : (w.columns - 1) / tile_columns(w.rows, w.columns, cuda) + 1;
  const int64_t n_reads = n_tiles * (is_forward ? 1 : std::ssize(parts));
  work.memory_bytes += parts.back().end + c.compute_bytes(w.rows * w.columns);
  // Each tile but the first reads the other operand again.
  const auto v = values_of<LinearValues>(c.op);
  work.memory_bytes += (n_tiles - 1) * c.traffic(is_forward ? v.x : v.y, 1);
  work.n_kernels += static_cast<int>(n_tiles + n_reads - 1);
}

}  // namespace

const OpDef kLinear = {
    .name = "linear",
    .values = LinearValues<int>::kNames,
    .n_inputs = 2,
    .params = LinearParams<int>::kNames,
    .attributes =
        [](const Op& op) {
          const auto& with = op.with<LinearAttributes>();
          if (with.rows.n > 0)
            return fmt::format("{} rows a rank from {}, {} sharers{}", with.rows.n, with.rows.first,
                               with.rows.n_sharers, with.keys.n > 0 ? ", keys" : "");
          if (with.columns.n > 0)
            return fmt::format("{} columns a rank, factor {}", with.columns.n, with.factor);
          return with.factor != 1 ? fmt::format("factor {}", with.factor)
                                  : std::string(with.sums_bias    ? "attention sums the bias"
                                                : with.keys.n > 0 ? "has keys"
                                                                  : "");
        },
    .reads_stored = true,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<LinearValues>(op);
          const int index = p.op(), dy = p.take_grad(v.y);
          p.pass_grad(v.residual, dy);
          const auto params = params_of<LinearParams>(op);
          if (p.is_trained(params.weight))
            p.when_there(v.x, dy, [&p, index, dy](int x) {
              p.call(index, Part::params, LinearWeightGrads<int>{.dy = dy, .x = x});
            });
          else if (p.is_trained(params.bias) && !op.with<LinearAttributes>().sums_bias)
            p.call(index, Part::params, LinearWeightGrads<int>{.dy = dy, .x = kNone});
          const auto [dx, sum] = p.grad_place(v.x, /*adds=*/true);
          p.call(index, Part::backward, LinearGrads<int>{.dy = dy, .dx = dx, .sum = sum});
        },
    .scratch = [](const OpCase& c, Part part) -> ScratchNeed {
      if (const StoredWeight w = weight_of(c); !w.storage.is_compute() && part != Part::params)
        return {.forward_bytes = c.compute_bytes(
                    part == Part::forward
                        ? tile_rows(w.rows, w.columns, c.target.is_cuda()) * w.columns
                        : w.rows * tile_columns(w.rows, w.columns, c.target.is_cuda()))};
      const bool has_bias = params_of<LinearParams>(c.op).bias != kNone;
      if (part != Part::params || !has_bias || c.op.with<LinearAttributes>().sums_bias) return {};
      return {.forward_bytes = column_sum_bytes(c, values_of<LinearValues>(c.op).y)};
    },
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<LinearValues>(c.op);
          const int64_t rows = c.worked_rows(v.x), inner = c.columns(v.x), columns = c.columns(v.y);
          ++work.n_kernels;
          if (call.part == Part::params) {
            if (named<LinearWeightGrads, int>(call.places).x != kNone)
              work.products.push_back({columns, rows, inner});
            const bool has_bias = params_of<LinearParams>(c.op).bias != kNone;
            if (has_bias && !c.op.with<LinearAttributes>().sums_bias) {
              work.memory_bytes += c.traffic(v.y, 1);
              work.n_kernels += 2;
            }
            return;
          }
          add_tiles(work, c, call.part);
          if (call.part == Part::backward) {
            work.products.push_back({rows, columns, inner});
            // A part of the gradient that is there already is read, too.
            const auto places = named<LinearGrads, int>(call.places);
            if (places.sum != kNone) work.memory_bytes += c.traffic(v.x, 1);
            return;
          }
          work.products.push_back({rows, inner, columns});
          if (v.residual == kNone) return;
          work.memory_bytes += c.traffic(v.y, 2);  // LibTorch copies the residual
          ++work.n_kernels;
          ++work.n_operations;
        },
    .compose =
        [](Composition& into, const Op& op) {
          auto v = values_of<LinearValues>(op);
          if (v.residual == kNone) return void(into.ops.push_back(op));
          const ValueId residual = std::exchange(v.residual, kNone), y = v.y;
          v.y = into.like(into.program.value(y).name + ".product", y);
          into.ops.push_back(make_op(kLinear, v, params_of<LinearParams>(op), op.attributes));
          into.ops.push_back(make_op(kAdd, AddValues<ValueId>{.a = v.y, .b = residual, .y = y}));
        },
    .lacks_kernels =
        [](const Op& op, const ProgramTarget&) {
          return values_of<LinearValues>(op).residual != kNone &&
                 params_of<LinearParams>(op).bias != kNone;
        },
};

}  // namespace ferry::ops
