#include <ATen/ATen.h>

#include <limits>

#include "models/ops/cross_attention/cross_attention_op.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

/** Distances of each key from each query, and what follows from them. */
class Distances {
 public:
  Distances(const DistanceBuckets& buckets, int64_t n, int64_t n_keys, Scratch& scratch)
      : ranges_(static_cast<size_t>(buckets.n), {n_keys, -n}) {
    for (int64_t d = 1 - n; d < n_keys && buckets.n > 0; ++d) {
      auto& [first, last] = ranges_[static_cast<size_t>(buckets.of(d))];
      first = std::min(first, d);
      last = std::max(last, d);
    }
    at::Tensor query = scratch.take({n, 1}, at::kFloat), key = scratch.take({n_keys}, at::kFloat);
    at::Tensor of_query = query.view({n});
    at::arange_out(of_query, n);
    at::arange_out(key, n_keys);
    distance_ = scratch.take({n, n_keys}, at::kFloat);
    at::sub_out(distance_, key, query);
    in_bucket_ = scratch.take({n, n_keys}, at::kFloat);
    upper_ = scratch.take({n, n_keys}, at::kFloat);
  }
  /** 1 for the pairs in the bucket, else 0, (queries, keys); undefined where there are none. */
  at::Tensor in(int64_t bucket) {
    const auto [first, last] = ranges_[static_cast<size_t>(bucket)];
    if (first > last) return {};
    at::ge_out(in_bucket_, distance_, first);
    at::le_out(upper_, distance_, last);
    return in_bucket_.mul_(upper_);
  }
  /** No query sees a key behind it. */
  void hide_later(at::Tensor& scores, Scratch& scratch) const {
    at::Tensor is_later = scratch.take(distance_.sizes(), at::kBool);
    at::gt_out(is_later, distance_, 0);
    scores.masked_fill_(is_later, -std::numeric_limits<double>::infinity());
  }

 private:
  std::vector<std::pair<int64_t, int64_t>> ranges_;  ///< by bucket: its first and last distance
  at::Tensor distance_, in_bucket_, upper_;
};

/** The sequences of both streams, and their attention in fp32. */
class Sequences {
 public:
  explicit Sequences(const OpCall& c)
      : with_(c.op.with<CrossAttentionAttributes>()),
        scratch_(c.scratch),
        of_queries_(c.batch),
        of_keys_(c.batch.stream(with_.kv_stream)) {}

  /** Sets q, k, v (heads, n, head width) and p, the softmax of scores (heads, queries, keys). */
  void attend(int64_t s,
              const at::Tensor& q_rows,
              const at::Tensor& kv_rows,
              const at::Tensor& bias) {
    const int64_t width = q_rows.size(1);
    q = by_head(queries(q_rows, s));
    k = by_head(keys(kv_rows, s, 0, width));
    v = by_head(keys(kv_rows, s, width, width));
    at::Tensor scores = scratch_.take({with_.n_heads, q.size(1), k.size(1)}, at::kFloat);
    p = scratch_.take(scores.sizes(), at::kFloat);
    at::bmm_out(scores, q, k.transpose(1, 2));
    if (with_.scale != 1) scores.mul_(with_.scale);
    if (bias.defined() || with_.causal) {
      distances.emplace(with_.buckets, q.size(1), k.size(1), scratch_);
      for (int64_t b = 0; bias.defined() && b < with_.buckets.n; ++b)
        if (const at::Tensor in = distances->in(b); in.defined())
          scores.addcmul_(in, bias[b].view({with_.n_heads, 1, 1}));
      if (with_.causal) distances->hide_later(scores, scratch_);
    }
    at::_softmax_out(p, scores, -1, /*half_to_float=*/false);
  }

  at::Tensor queries(const at::Tensor& rows, int64_t s) const { return part(of_queries_, rows, s); }
  at::Tensor keys(const at::Tensor& rows, int64_t s, int64_t first, int64_t n) const {
    return part(of_keys_, rows, s).narrow(1, first, n);
  }
  at::Tensor by_head(const at::Tensor& rows) {
    at::Tensor out =
        scratch_.take({with_.n_heads, rows.size(0), rows.size(1) / with_.n_heads}, at::kFloat);
    return out.copy_(in_heads(rows));
  }
  /** (heads, n, head width) over the same memory. */
  at::Tensor in_heads(const at::Tensor& rows) const {
    return rows.view({rows.size(0), with_.n_heads, rows.size(1) / with_.n_heads}).transpose(0, 1);
  }

  at::Tensor q, k, v, p;
  std::optional<Distances> distances;

 private:
  static at::Tensor part(const StreamTensors& stream, const at::Tensor& rows, int64_t s) {
    const auto at = static_cast<size_t>(s);
    const int64_t first = stream.cu_seqlens_host[at];
    return rows.narrow(0, first, stream.cu_seqlens_host[at + 1] - first);
  }

  const CrossAttentionAttributes& with_;
  Scratch& scratch_;
  const StreamTensors &of_queries_, &of_keys_;
};

void attend_forward(const OpCall& c) {
  const auto o = c.operands<CrossAttentionValues>();
  o.context->zero_();
  for (int64_t s = 0; s < c.batch.n_seqs_real; ++s) {
    const ScratchScope scope(c.scratch);
    Sequences its(c);
    its.attend(s, o.q, o.kv, o.bias);
    at::Tensor context = c.scratch.take(its.q.sizes(), at::kFloat);
    at::bmm_out(context, its.p, its.v);
    its.in_heads(its.queries(o.context, s)).copy_(context);
  }
}

/** The scores are made again. */
void attend_backward(const OpCall& c) {
  const auto o = c.operands<CrossAttentionGrads>();
  const auto& with = c.op.with<CrossAttentionAttributes>();
  o.dq->zero_();
  o.dkv->zero_();
  if (o.d_bias->defined() && !o.sum->defined()) o.d_bias->zero_();
  if (o.d_bias->defined() && o.sum->defined() && !o.d_bias->is_same(o.sum)) o.d_bias->copy_(o.sum);
  const int64_t width = o.q->size(1);
  for (int64_t s = 0; s < c.batch.n_seqs_real; ++s) {
    const ScratchScope scope(c.scratch);
    Sequences its(c);
    its.attend(s, o.q, o.kv, o.bias);
    const at::Tensor d_context = its.by_head(its.queries(o.d_context, s));
    const auto leave = [&](const at::Tensor& of, const at::Tensor& from) {
      its.in_heads(of).copy_(from);
    };
    at::Tensor d_scores = c.scratch.take(its.p.sizes(), at::kFloat),
               dp = c.scratch.take(its.p.sizes(), at::kFloat);
    at::Tensor d_rows = c.scratch.take(its.q.sizes(), at::kFloat),
               d_keys = c.scratch.take(its.k.sizes(), at::kFloat);
    at::bmm_out(d_keys, its.p.transpose(1, 2), d_context);
    leave(its.keys(o.dkv, s, width, width), d_keys);
    at::bmm_out(dp, d_context, its.v.transpose(1, 2));
    at::_softmax_backward_data_out(d_scores, dp, its.p, -1, at::kFloat);
    at::Tensor of_heads = c.scratch.take({with.n_heads}, at::kFloat);
    for (int64_t b = 0; o.d_bias->defined() && b < with.buckets.n; ++b)
      if (const at::Tensor in = its.distances->in(b); in.defined()) {
        at::mul_out(dp, d_scores, in);
        at::sum_out(of_heads, dp, {1, 2});
        o.d_bias->select(0, b).add_(of_heads);
      }
    if (with.scale != 1) d_scores.mul_(with.scale);
    at::bmm_out(d_rows, d_scores, its.k);
    leave(its.queries(o.dq, s), d_rows);
    at::bmm_out(d_keys, d_scores.transpose(1, 2), its.q);
    leave(its.keys(o.dkv, s, 0, width), d_keys);
  }
}

}  // namespace

void run_cross_attention(const OpCall& c) {
  if (c.part == Part::backward) return attend_backward(c);
  attend_forward(c);
}

}  // namespace ferry::ops
