#include <ATen/ops/_flash_attention_backward.h>
#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <optional>

#include "models/ops/attention/gpu_attention.h"
#include "models/ops/ring_attention/part_attention.h"
#include "models/ops/run.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

/** Arguments that both passes hand to LibTorch's kernels. */
struct FlashCall {
  at::Tensor q, k, v;               ///< (n, heads, d)
  at::Tensor query_ends, key_ends;  ///< (2) int32: one sequence
  int64_t n_queries, n_keys;
  std::optional<double> scale;
  std::optional<int64_t> before, after;  ///< tokens that a query sees; none: all

  FlashCall(const OpCall& c, const PartOperands& its)
      : q(by_head(its.q, c)),
        k(by_head(its.k, c)),
        v(by_head(its.v, c)),
        query_ends(ends(its.part.queries.n, c.scratch)),
        key_ends(ends(its.part.keys.n, c.scratch)),
        n_queries(its.part.queries.n),
        n_keys(its.part.keys.n) {
    const auto& with = c.op.with<AttentionAttributes>();
    if (with.scores.scale != 0) scale = with.scores.scale;
    // Flash attention counts from the key that lies as far from the last one as the query does.
    // Where a window ends on the left, it takes the greatest number of keys for the end on the
    // right, and that number must reach beyond the last key of every query.
    if (with.scores.window > 0) n_keys = std::max(n_keys, n_queries);
    if (with.scores.window > 0) before = with.scores.window - its.part.gap() - n_queries;
  }

  static at::Tensor by_head(const at::Tensor& rows, const OpCall& c) {
    const int64_t d = c.op.with<AttentionAttributes>().heads.head_width;
    return rows.view({rows.size(0), rows.size(1) / d, d});
  }

 private:
  static at::Tensor ends(int64_t n, Scratch& scratch) {
    at::Tensor both = scratch.take({2}, at::kInt);
    return at::arange_out(both, 0, n + 1, n);
  }
};

}  // namespace

PartResults flash_part_forward(const OpCall& c,
                               const Dropout& dropout,
                               const PartOperands& its,
                               at::Tensor seeds) {
  const ScratchScope scope(c.scratch);
  const FlashCall call(c, its);
  const auto held = gpu::seed_generator(its.q, dropout);
  const auto [out, lse, rng, unused, mask] = at::_flash_attention_forward(
      call.q, call.k, call.v, call.query_ends, call.key_ends, call.n_queries, call.n_keys,
      dropout.p, /*is_causal=*/false, /*return_debug_mask=*/false, call.scale, call.before,
      call.after);
  if (dropout.p > 0) seeds.copy_(rng.view(at::kLong));
  return {.out = out.view(its.q.sizes()), .lse = lse};
}

PartGradientsOut flash_part_backward(const OpCall& c,
                                     const Dropout& dropout,
                                     const PartOperands& its,
                                     const PartGradients& given) {
  const ScratchScope scope(c.scratch);
  const FlashCall call(c, its);
  at::Tensor lse = c.scratch.take(given.lse.sizes(), at::kFloat),
             d_out = c.scratch.take(its.q.sizes(), its.q.scalar_type()),
             out = c.scratch.take(its.q.sizes(), its.q.scalar_type());
  lse.copy_(given.lse);
  d_out.copy_(given.d_out);
  out.copy_(given.out);
  const at::Tensor rng = given.seeds.view(at::kUInt64);
  const auto [dq, dk, dv] = at::_flash_attention_backward(
      FlashCall::by_head(d_out, c), call.q, call.k, call.v, FlashCall::by_head(out, c), lse,
      call.query_ends, call.key_ends, call.n_queries, call.n_keys, dropout.p,
      /*is_causal=*/false, rng, rng, call.scale, call.before, call.after);
  return {.dq = dq.view(its.q.sizes()), .dk = dk.view(its.k.sizes()), .dv = dv.view(its.v.sizes())};
}

}  // namespace ferry::ops
