#include <ATen/ops/sum.h>

#include "models/ops/linear/linear.h"
#include "models/ops/linear/linear_op.h"
#include "models/ops/linear/stored.h"
#include "models/ops/rows/rows.h"
#include "models/ops/run.h"

namespace ferry::ops {
namespace {

/** Columns [first, first + n) of a matrix, or elements of a vector. */
at::Tensor columns_from(const at::Tensor& x, int64_t first, int64_t n) {
  const int64_t last = x.defined() ? x.dim() - 1 : 0;
  return !x.defined() || x.size(last) == n ? x : x.narrow(last, first, n);
}

int rank_of(const OpCall& c) {
  return c.batch.sharing_ranks ? c.batch.sharing_ranks->rank() : 0;
}

/** This rank's part of a weight or of its gradient. */
at::Tensor own_part(const OpCall& c, const at::Tensor& w) {
  const auto& with = c.op.with<LinearAttributes>();
  if (!w.defined()) return w;
  const auto part = [&](int dimension, const WeightPart& its) {
    return w.narrow(dimension, its.first + rank_of(c) / its.n_sharers * its.n, its.n);
  };
  if (with.rows.n > 0) return part(0, with.rows);
  return with.columns.n > 0 ? part(1, with.columns) : w;
}
/** The same of a bias or its gradient. */
at::Tensor own_bias(const OpCall& c, const at::Tensor& bias) {
  const auto& with = c.op.with<LinearAttributes>();
  if (with.columns.n > 0 && rank_of(c) > 0) return {};
  return with.rows.n > 0 ? own_part(c, bias) : bias;
}

/** work(w, first, n) for all rows, or columns, of the weight at once; where it is stored another
 * way, for a tile of them after the other. */
template <class Work>
void for_tiles(const OpCall& c, int64_t rows, int64_t columns, bool by_rows, const Work& work) {
  const at::Tensor& stored = c.params<LinearParams>().weight;
  const MatrixStorage storage = c.target.storage_of(params_of<LinearParams>(c.op).weight);
  const int64_t n_all = by_rows ? rows : columns;
  if (storage.is_compute()) return work(own_part(c, stored), 0, n_all);
  const StoredParts parts = stored_parts(storage, rows, columns, c.target.compute);
  const int64_t n_tile = by_rows ? tile_rows(rows, columns, c.target.is_cuda())
                                 : tile_columns(rows, columns, c.target.is_cuda());
  for (int64_t first = 0; first < n_all; first += n_tile) {
    const ScratchScope scope(c.scratch);
    const int64_t n = std::min(n_tile, n_all - first);
    at::Tensor tile = c.scratch.take({by_rows ? n : rows, by_rows ? columns : n},
                                     scalar_type_of(c.target.compute));
    read_tile(parts, stored, by_rows ? first : 0, by_rows ? 0 : first, tile);
    work(tile, first, n);
  }
}

/** y = factor * (x w^T + bias) + residual. */
void run_forward(const OpCall& c, const LinearValues<TensorRef>& o, float factor) {
  const at::Tensor bias = own_bias(c, c.params<LinearParams>().bias);
  const auto part = [&](const at::Tensor& w, int64_t first, int64_t n) {
    at::Tensor y = columns_from(o.y, first, n);
    if (!o.residual->defined())
      return linear_forward(o.x, w, columns_from(bias, first, n), y, factor);
    const bool is_same = o.residual->is_same(o.y);
    linear_forward_add(o.x, w, is_same ? y : columns_from(o.residual, first, n), y, factor);
  };
  for_tiles(c, o.y->size(1), o.x->size(1), /*by_rows=*/true, part);
}

/** dx = factor * dy w + sum. */
void run_backward(const OpCall& c, const LinearGrads<TensorRef>& o, float factor) {
  const auto part = [&](const at::Tensor& w, int64_t first, int64_t n) {
    at::Tensor dx = columns_from(o.dx, first, n);
    if (!o.sum->defined()) return linear_backward_input(o.dy, w, dx, factor);
    const bool is_same = o.sum->is_same(o.dx);
    linear_backward_input_add(o.dy, w, is_same ? dx : columns_from(o.sum, first, n), dx, factor);
  };
  for_tiles(c, o.dy->size(1), o.dx->size(1), /*by_rows=*/false, part);
}

}  // namespace

void run_linear(const OpCall& c) {
  const auto& with = c.op.with<LinearAttributes>();
  if (c.part == Part::forward) return run_forward(c, c.operands<LinearValues>(), with.factor);
  if (c.part == Part::backward) return run_backward(c, c.operands<LinearGrads>(), with.factor);
  const auto o = c.operands<LinearWeightGrads>();
  const auto grads = c.grads<LinearParams>();
  at::Tensor d_weight = own_part(c, grads.weight);
  if (o.x->defined()) linear_backward_weight(o.dy, o.x, d_weight, with.factor);
  if (!c.params<LinearParams>().bias->defined() || with.sums_bias) return;
  at::Tensor d_bias = own_bias(c, grads.bias);
  if (!d_bias.defined()) return;
  if (o.dy->is_contiguous())
    column_sum(o.dy, d_bias, c.scratch);
  else  // a part of a gradient
    at::sum_out(d_bias, o.dy, 0);
  if (with.factor != 1) d_bias.mul_(with.factor);
  if (with.keys.n > 0) d_bias.narrow(0, with.keys.first, with.keys.n).zero_();
}

}  // namespace ferry::ops
