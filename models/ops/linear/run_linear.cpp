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

/** work(w, first, n) for all rows, or columns, of the weight at once; where it is stored another
 * way, for a tile of them after the other. */
template <class Work>
void for_tiles(const OpCall& c, int64_t rows, int64_t columns, bool by_rows, const Work& work) {
  const at::Tensor& stored = c.params<LinearParams>().weight;
  const StoredMatrix matrix = stored_matrix(
      c.target.storage_of(params_of<LinearParams>(c.op).weight), rows, columns, c.target.compute);
  const int64_t n_all = by_rows ? rows : columns;
  if (matrix.storage == Storage::compute) return work(stored, 0, n_all);
  const int64_t n_tile = by_rows ? tile_rows(matrix) : tile_columns(matrix);
  for (int64_t first = 0; first < n_all; first += n_tile) {
    const ScratchScope scope(c.scratch);
    const int64_t n = std::min(n_tile, n_all - first);
    at::Tensor tile = c.scratch.take({by_rows ? n : rows, by_rows ? columns : n},
                                     scalar_type_of(c.target.compute));
    read_tile(matrix, stored, by_rows ? first : 0, by_rows ? 0 : first, tile);
    work(tile, first, n);
  }
}

/** y = factor * (x w^T + bias) + residual. */
void run_forward(const OpCall& c, const LinearValues<TensorRef>& o, float factor) {
  const at::Tensor& bias = c.params<LinearParams>().bias;
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
  linear_backward_weight(o.dy, o.x, grads.weight, with.factor);
  if (!c.params<LinearParams>().bias->defined() || with.sums_bias) return;
  if (o.dy->is_contiguous())
    column_sum(o.dy, grads.bias, c.scratch);
  else  // a part of a gradient
    at::sum_out(grads.bias, o.dy, 0);
  if (with.factor != 1) grads.bias->mul_(with.factor);
}

}  // namespace ferry::ops
