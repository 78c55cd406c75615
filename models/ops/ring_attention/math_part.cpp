#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/ops/dispatch.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/ring_attention/part_attention.h"
#include "models/ops/run.h"
#include "models/ops/scratch_sizes.h"
#include "simd/kernels.h"
#include "simd/philox.h"

namespace ferry::ops {

namespace {

/** Queries that are worked on at a time. */
int64_t rows_at_a_time(int64_t n_heads, int64_t n_queries, int64_t n_keys) {
  return std::clamp<int64_t>(kCappedScores_max / (n_heads * n_keys), 1, n_queries);
}

double scale_of(const AttentionAttributes& with) {
  if (with.scores.scale != 0) return with.scores.scale;
  return 1 / std::sqrt(static_cast<double>(with.heads.head_width));
}

/** Heads of keys, each with its group of queries' heads. */
class Heads {
 public:
  Heads(const OpCall& c, const PartOperands& its)
      : c_(c),
        with_(c.op.with<AttentionAttributes>()),
        part_(its.part),
        scale_(scale_of(with_)),
        k(of_keys(its.k)),
        v(of_keys(its.v)) {}

  int64_t n_heads() const { return with_.heads.n_heads; }
  int64_t n_kv_heads() const { return with_.heads.n_kv_heads; }
  int64_t group() const { return n_heads() / n_kv_heads(); }
  int64_t width() const { return with_.heads.head_width; }
  double scale() const { return scale_; }

  /** (n, heads * d) as (heads of keys, group, n, d), a view. */
  at::Tensor view_of(const at::Tensor& rows) const {
    return rows.view({rows.size(0), n_kv_heads(), group(), width()}).permute({1, 2, 0, 3});
  }
  /** A copy of it as (heads of keys, group * n, d). */
  at::Tensor of_queries(const at::Tensor& rows) const {
    at::Tensor out = c_.scratch.take({n_kv_heads(), group(), rows.size(0), width()}, at::kFloat);
    out.copy_(view_of(rows));
    return out.view({n_kv_heads(), group() * rows.size(0), width()});
  }
  void put_queries(const at::Tensor& from, at::Tensor rows) const {
    view_of(rows).copy_(from.view({n_kv_heads(), group(), rows.size(0), width()}));
  }
  /** The lse of some rows as (heads of keys, group * n, 1). */
  at::Tensor of_sums(const at::Tensor& sums) const {
    at::Tensor out = c_.scratch.take({n_heads(), sums.size(1)}, at::kFloat);
    return out.copy_(sums).view({n_kv_heads(), group() * sums.size(1), 1});
  }

  /** The scores of queries from `row` on, (heads of keys, group * n, keys). */
  at::Tensor scores(const at::Tensor& q, int64_t row, int64_t n) const {
    at::Tensor out = c_.scratch.take({n_kv_heads(), group() * n, part_.keys.n}, at::kFloat);
    at::bmm_out(out, q, k.transpose(1, 2));
    out.mul_(scale_);
    hide(out, row, n);
    return out;
  }

  /** x is multiplied with the mask of the queries from `row` on. */
  void drop(const Dropout& dropout, at::Tensor& x, int64_t row, int64_t n) const {
    if (dropout.p == 0) return;
    if (on_cuda(x)) {
      // Each part has elements of its own, whose place says which they are.
      Dropout its = dropout;
      // The kernel's packs of elements begin at a multiple of 8.
      its.first_element = round_up(
          part_.first_mask +
              n_heads() * ((part_.queries.position + row) * part_.length + part_.keys.position * n),
          8);
      at::Tensor rows = x.view({n_heads() * n, part_.keys.n});
      return ops::dropout(rows, its, rows);
    }
    std::vector<uint8_t> keep(static_cast<size_t>(part_.keys.n));
    const float kept = simd::dropout_scale(dropout.p);
    float* at = floats_of(x);
    for (int64_t head = 0; head < n_heads(); ++head)
      for (int64_t i = 0; i < n; ++i) {
        const int64_t first =
            part_.first_mask +
            (head * part_.length + part_.queries.position + row + i) * part_.length +
            part_.keys.position;
        simd::dropout_mask(keep.data(), part_.keys.n, static_cast<uint64_t>(first), dropout.key,
                           dropout.p);
        for (int64_t j = 0; j < part_.keys.n; ++j, ++at)
          *at = keep[static_cast<size_t>(j)] ? *at * kept : 0;
      }
  }

 private:
  at::Tensor of_keys(const at::Tensor& rows) const {
    at::Tensor out = c_.scratch.take({n_kv_heads(), rows.size(0), width()}, at::kFloat);
    return out.copy_(rows.view({rows.size(0), n_kv_heads(), width()}).transpose(0, 1));
  }

  /** Scores of keys that a query does not see become -inf. */
  void hide(at::Tensor& scores, int64_t row, int64_t n) const {
    const bool hides_later = with_.causal && part_.keys.position == part_.queries.position;
    if (!hides_later && with_.scores.window == 0) return;
    const ScratchScope scope(c_.scratch);
    at::Tensor query = c_.scratch.take({n}, at::kFloat),
               key = c_.scratch.take({part_.keys.n}, at::kFloat),
               distance = c_.scratch.take({n, part_.keys.n}, at::kFloat),
               hidden = c_.scratch.take({n, part_.keys.n}, at::kBool);
    const int64_t first = part_.queries.position + row;
    at::arange_out(query, first, first + n, 1);
    at::arange_out(key, part_.keys.position, part_.keys.position + part_.keys.n, 1);
    at::sub_out(distance, query.view({n, 1}), key);
    at::Tensor by_head = scores.view({n_heads(), n, part_.keys.n});
    const double none = -std::numeric_limits<double>::infinity();
    if (hides_later) by_head.masked_fill_(at::lt_out(hidden, distance, 0), none);
    if (with_.scores.window > 0)
      by_head.masked_fill_(at::ge_out(hidden, distance, with_.scores.window), none);
  }

  const OpCall& c_;
  const AttentionAttributes& with_;
  const RingPart& part_;
  double scale_;

 public:
  at::Tensor k, v;  ///< (heads of keys, keys, d)
};

}  // namespace

PartResults math_part_forward(const OpCall& c, const Dropout& dropout, const PartOperands& its) {
  const int64_t n = its.part.queries.n, n_heads = c.op.with<AttentionAttributes>().heads.n_heads;
  PartResults results = {.out = c.scratch.take(its.q.sizes(), at::kFloat),
                         .lse = c.scratch.take({n_heads, n}, at::kFloat)};
  const ScratchScope scope(c.scratch);
  const Heads heads(c, its);
  const int64_t n_rows = rows_at_a_time(n_heads, n, its.part.keys.n);
  for (int64_t row = 0; row < n; row += n_rows) {
    const ScratchScope block(c.scratch);
    const int64_t rows = std::min(n_rows, n - row);
    const at::Tensor q = heads.of_queries(its.q.narrow(0, row, rows));
    at::Tensor p = heads.scores(q, row, rows);
    at::Tensor most = c.scratch.take({p.size(0), p.size(1), 1}, at::kFloat),
               sum = c.scratch.take(most.sizes(), at::kFloat);
    at::amax_out(most, p, {2}, /*keepdim=*/true);
    p.sub_(most).exp_();
    at::sum_out(sum, p, {2}, /*keepdim=*/true);
    p.div_(sum);
    results.lse.narrow(1, row, rows).copy_(most.add_(sum.log_()).view({n_heads, rows}));
    heads.drop(dropout, p, row, rows);
    at::Tensor out = c.scratch.take(q.sizes(), at::kFloat);
    at::bmm_out(out, p, heads.v);
    heads.put_queries(out, results.out.narrow(0, row, rows));
  }
  return results;
}

PartGradientsOut math_part_backward(const OpCall& c,
                                    const Dropout& dropout,
                                    const PartOperands& its,
                                    const PartGradients& given) {
  const int64_t n = its.part.queries.n, n_heads = c.op.with<AttentionAttributes>().heads.n_heads;
  PartGradientsOut out = {.dq = c.scratch.take(its.q.sizes(), at::kFloat),
                          .dk = c.scratch.take(its.k.sizes(), at::kFloat),
                          .dv = c.scratch.take(its.v.sizes(), at::kFloat)};
  const ScratchScope scope(c.scratch);
  const Heads heads(c, its);
  at::Tensor dk = c.scratch.take(heads.k.sizes(), at::kFloat),
             dv = c.scratch.take(heads.v.sizes(), at::kFloat);
  dk.zero_();
  dv.zero_();
  const int64_t n_rows = rows_at_a_time(n_heads, n, its.part.keys.n);
  for (int64_t row = 0; row < n; row += n_rows) {
    const ScratchScope block(c.scratch);
    const int64_t rows = std::min(n_rows, n - row);
    const auto of_block = [&](const at::Tensor& x) {
      return heads.of_queries(x.narrow(0, row, rows));
    };
    const at::Tensor q = of_block(its.q), d_out = of_block(given.d_out);
    at::Tensor context = of_block(given.out);
    at::Tensor p = heads.scores(q, row, rows);
    p.sub_(heads.of_sums(given.lse.narrow(1, row, rows))).exp_();
    // The gradient of a score is p (dp - d), d = d_out . context.
    at::Tensor d = c.scratch.take({p.size(0), p.size(1), 1}, at::kFloat);
    at::sum_out(d, context.mul_(d_out), {2}, /*keepdim=*/true);
    at::Tensor dp = c.scratch.take(p.sizes(), at::kFloat);
    at::bmm_out(dp, d_out, heads.v.transpose(1, 2));
    heads.drop(dropout, dp, row, rows);
    dp.sub_(d).mul_(p).mul_(heads.scale());
    heads.drop(dropout, p, row, rows);
    dv.baddbmm_(p.transpose(1, 2), d_out);
    dk.baddbmm_(dp.transpose(1, 2), q);
    at::bmm_out(context, dp, heads.k);
    heads.put_queries(context, out.dq.narrow(0, row, rows));
  }
  const auto put_keys = [&](const at::Tensor& from, at::Tensor& rows) {
    rows.view({rows.size(0), heads.n_kv_heads(), heads.width()}).copy_(from.transpose(0, 1));
  };
  put_keys(dk, out.dk);
  put_keys(dv, out.dv);
  return out;
}

}  // namespace ferry::ops
