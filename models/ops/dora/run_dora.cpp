#include "models/ops/dispatch.h"
#include "models/ops/dora/dora.h"
#include "models/ops/dora/dora_op.h"
#include "models/ops/linear/linear.h"
#include "models/ops/linear/stored.h"
#include "models/ops/rows/rows.h"
#include "models/ops/run.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {
namespace {

const DoraKernels& kernels_of(const at::Tensor& x) {
  return kernels_for(x, kCpuDora, kCudaDora);
}

float* floats_at(const at::Tensor& scale, int64_t row, int64_t column) {
  return floats_of(scale) + row * scale.size(1) + column;
}

/** Scales of the rows of a part. */
void find_scales(const OpCall& c,
                 const LowRankPart& part,
                 const at::Tensor& a,
                 const at::Tensor& b,
                 const at::Tensor& magnitude,
                 const at::Tensor& scale) {
  const auto& with = c.op.with<DoraScaleAttributes>();
  const auto params = c.params<DoraScaleParams>();
  const MatrixStorage storage = c.target.storage_of(params_of<DoraScaleParams>(c.op).weight);
  const bool is_stored = !storage.is_compute();
  const StoredParts parts = stored_parts(storage, scale.size(1), with.columns, c.target.compute);
  const int64_t n_tile =
      is_stored ? std::min(part.n, tile_rows(scale.size(1), with.columns, c.target.is_cuda()))
                : part.n;
  const ScratchScope scope(c.scratch);
  at::Tensor square = c.scratch.take({with.rank, with.rank}, a.scalar_type());
  linear_forward(a, a, {}, square);
  for (int64_t first = 0; first < part.n; first += n_tile) {
    const ScratchScope of_tile(c.scratch);
    const int64_t n = std::min(n_tile, part.n - first), row = part.first + first;
    at::Tensor w;
    if (is_stored) {
      w = c.scratch.take({n, with.columns}, a.scalar_type());
      read_tile(parts, params.weight, row, 0, w);
    } else {
      w = params.weight->narrow(0, row, n);
    }
    const at::Tensor its_b = b.narrow(0, first, n);
    at::Tensor p = c.scratch.take({n, with.rank}, a.scalar_type());
    linear_forward(w, a, {}, p);
    linear_forward_add(its_b, square, p, p, with.factor / 2);
    kernels_of(w).norms({.extent = extent_of(w),
                         .rank = with.rank,
                         .factor = 2 * with.factor,
                         .w = data_of(w),
                         .p = data_of(p),
                         .b = data_of(its_b),
                         .magnitude = data_of(magnitude.narrow(0, first, n)),
                         .scale = floats_at(scale, 0, row),
                         .inverse = floats_at(scale, 1, row)},
                        launch_on(w));
  }
}

}  // namespace

void run_dora_scale(const OpCall& c) {
  const auto& with = c.op.with<DoraScaleAttributes>();
  int64_t row = 0, row_of_a = 0;
  if (c.part == Part::forward) {
    const auto o = c.operands<DoraScaleValues>();
    const auto params = c.params<DoraScaleParams>();
    if (o.before->defined()) {
      o.scale->copy_(o.before);
    } else {
      o.scale->select(0, 0).fill_(1);
      o.scale->select(0, 1).zero_();
    }
    for (const LowRankPart& part : with.parts) {
      find_scales(c, part, params.a->narrow(0, row_of_a, with.rank),
                  params.b->narrow(0, row, part.n), params.magnitude->narrow(0, row, part.n),
                  o.scale);
      row += part.n;
      row_of_a += with.rank;
    }
    return;
  }
  const auto o = c.operands<DoraScaleGrads>();
  const at::Tensor& d_magnitude = c.grads<DoraScaleParams>().magnitude;
  if (!d_magnitude.defined()) return;
  for (const LowRankPart& part : with.parts) {
    const at::Tensor out = d_magnitude.narrow(0, row, part.n);
    kernels_of(out).product({.type = dtype_of(out),
                             .n = part.n,
                             .a = floats_at(o.d_scale, 0, part.first),
                             .b = floats_at(o.scale, 1, part.first),
                             .out = data_of(out)},
                            launch_on(out));
    row += part.n;
  }
}

void run_dora(const OpCall& c) {
  const auto& with = c.op.with<DoraAttributes>();
  if (c.part == Part::forward) {
    const auto o = c.operands<DoraValues>();
    kernels_of(o.y).forward({.extent = extent_of(o.y),
                             .bias_factor = with.bias_factor,
                             .v = data_of(o.v),
                             .scale = floats_of(o.scale),
                             .base = data_of(o.base),
                             .plain = data_of(o.plain),
                             .bias = data_of(c.params<DoraParams>().bias),
                             .y = data_of(o.y)},
                            launch_on(o.y));
    return;
  }
  if (c.part == Part::backward) {
    const auto o = c.operands<DoraGrads>();
    const Extent extent = extent_of(o.dy);
    const ScratchScope scope(c.scratch);
    void* sums = take_bytes(c.scratch, column_sum_scratch_bytes(extent.T, extent.W));
    kernels_of(o.dy).backward({.extent = extent,
                               .dy = data_of(o.dy),
                               .v = data_of(o.v),
                               .scale = floats_of(o.scale),
                               .dv = data_of(o.dv),
                               .d_plain = data_of(o.d_plain),
                               .d_scale = floats_of(o.d_scale)},
                              launch_on(o.dy, sums));
    return;
  }
  const at::Tensor& d_bias = c.grads<DoraParams>().bias;
  if (!d_bias.defined()) return;
  column_sum(c.operands<DoraBiasGrads>().dy, d_bias, c.scratch);
  if (with.bias_factor != 1) d_bias.mul_(with.bias_factor);
  if (with.n_keys > 0) d_bias.narrow(0, with.first_key, with.n_keys).zero_();
}

}  // namespace ferry::ops
