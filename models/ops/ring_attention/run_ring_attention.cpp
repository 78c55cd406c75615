#include <ATen/ATen.h>

#include <vector>

#include "models/ops/attention/gpu_attention.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/ring_attention/part_attention.h"
#include "models/ops/run.h"

namespace ferry::ops {

namespace {

/** One call on the rank's tokens, and its neighbours in the ring. */
class Ring {
 public:
  explicit Ring(const OpCall& c)
      : c(c),
        with(c.op.with<AttentionAttributes>()),
        ranks(c.sharing_ranks()),
        rank(ranks.rank()),
        n_ranks(ranks.world()),
        W(with.heads.width()),
        K(with.heads.n_kv_heads * with.heads.head_width),
        is_flash(c.target.attention == AttentionBackend::flash) {
    const StreamTensors& all = c.batch.stream(1);
    shape = {.cu_seqlens = all.cu_seqlens_host.first(static_cast<size_t>(all.n_seqs) + 1),
             .n_tokens = c.batch.shape.tokens,
             .n_heads = with.heads.n_heads,
             .causal = with.causal,
             .window = with.scores.window};
  }

  /** The dropout of own queries with the keys of a rank. The CPU's masks are those of one rank, and
   * flash attention's have a key for each two ranks. */
  Dropout dropout_with(int other) const {
    Dropout its = dropout_of(c.key, with.random, with.dropout, 0);
    constexpr uint64_t kOtherKey = 0x9E3779B97F4A7C15;
    if (is_flash) its.key ^= static_cast<uint64_t>(rank * n_ranks + other) * kOtherKey;
    return its;
  }

  /** Keys and values of some rows, (2, n, K). */
  at::Tensor packed(const at::Tensor& qkv, const SequenceRows& rows) const {
    at::Tensor both = c.scratch.take({2, rows.n, K}, qkv.scalar_type());
    for (int64_t i = 0; i < 2; ++i)
      both.select(0, i).copy_(qkv.narrow(0, rows.first, rows.n).narrow(1, W + i * K, K));
    return both;
  }
  at::Tensor room(const SequenceRows& rows, at::ScalarType type) const {
    return c.scratch.take({2, rows.n, K}, type);
  }
  /** A copy in fp32, or the tensor itself where it is. */
  at::Tensor widened(const at::Tensor& x) const {
    if (is_flash || x.scalar_type() == at::kFloat) return x;
    return c.scratch.take(x.sizes(), at::kFloat).copy_(x);
  }
  /** Sends a tensor to one rank while one comes from another; undefined: nothing goes there. */
  void exchange(const at::Tensor& sent, int to, const at::Tensor& received, int from) const {
    const auto bytes_of = [](const at::Tensor& x) {
      return std::span(static_cast<std::byte*>(x.data_ptr()), x.nbytes());
    };
    std::vector<std::span<const std::byte>> sends(static_cast<size_t>(n_ranks));
    std::vector<std::span<std::byte>> receives(sends.size());
    if (sent.defined()) sends[static_cast<size_t>(to)] = bytes_of(sent);
    if (received.defined()) receives[static_cast<size_t>(from)] = bytes_of(received);
    ranks.exchange(sends, receives);
  }
  static at::Tensor rows_of(const at::Tensor& x, const SequenceRows& rows) {
    return x.narrow(0, rows.first, rows.n);
  }
  /** The operands of a part whose keys and values are (2, n, K). */
  PartOperands operands(const RingPart& part, const at::Tensor& qkv, const at::Tensor& keys) const {
    return {
        .part = part, .q = rows_of(qkv, part.queries).narrow(1, 0, W), .k = keys[0], .v = keys[1]};
  }
  PartOperands own_operands(const RingPart& part, const at::Tensor& qkv) const {
    const at::Tensor rows = rows_of(qkv, part.keys);
    return {.part = part,
            .q = rows.narrow(1, 0, W),
            .k = rows.narrow(1, W, K),
            .v = rows.narrow(1, W + K, K)};
  }
  /** Own attention by flash's kernels, which take all sequences at once. */
  Attention own_attention() const {
    return {.backend = AttentionBackend::flash,
            .n_heads = with.heads.n_heads,
            .dropout = dropout_with(rank),
            .n_kv_heads = with.heads.n_kv_heads,
            .causal = with.causal,
            .scale = with.scores.scale,
            .window = with.scores.window};
  }

  /** The other ranks in the order in which their keys come: the rank before this one first. While
   * keys come `from` there, own keys go `to` as far a rank on the other side. */
  template <class Each>
  void for_others(const Each& each) const {
    for (int step = 1; step < n_ranks; ++step)
      each((rank + step) % n_ranks, (rank + n_ranks - step) % n_ranks);
  }
  const OpCall& c;
  const AttentionAttributes& with;
  SharingRanks& ranks;
  const int rank, n_ranks;
  const int64_t W, K;  ///< columns of queries, and of keys
  const bool is_flash;
  RingShape shape;
};

/** Adds a part's context to the rows of a sum in fp32, weighted by sums of exponentials. */
void merge(const OpCall& c,
           const AttentionHeads& heads,
           at::Tensor sum,
           at::Tensor lse,
           const PartResults& part) {
  const ScratchScope scope(c.scratch);
  const auto taken = [&] { return c.scratch.take(lse.sizes(), at::kFloat); };
  at::Tensor both = taken(), mine = taken(), its = taken();
  at::logaddexp_out(both, lse, part.lse);
  at::sub_out(mine, lse, both).exp_();
  at::sub_out(its, part.lse, both).exp_();
  lse.copy_(both);
  at::Tensor out = part.out;
  if (out.scalar_type() != at::kFloat) out = c.scratch.take(out.sizes(), at::kFloat).copy_(out);
  const auto by_head = [&](const at::Tensor& x) {
    return x.view({x.size(0), heads.n_heads, heads.head_width});
  };
  const auto weights = [](const at::Tensor& x) { return x.transpose(0, 1).unsqueeze(2); };
  by_head(sum).mul_(weights(mine));
  by_head(sum).add_(by_head(out).mul_(weights(its)));
}

void ring_forward(const OpCall& c) {
  const Ring ring(c);
  const ScratchScope scope(c.scratch);
  const auto o = c.operands<AttentionValues>();
  const auto states = c.kept<RingAttentionStates>();
  const at::Tensor qkv = ring.widened(o.qkv);
  at::Tensor sum = o.context;
  if (ring.is_flash) {
    std::array own_states = {*states.lse, states.seeds->select(0, ring.rank)};
    const Attention attention = ring.own_attention();
    gpu::flash_forward({attention, c.batch, o.qkv, own_states, o.context, c.scratch});
  }
  if (sum.scalar_type() != at::kFloat)
    sum = c.scratch.take(sum.sizes(), at::kFloat).copy_(o.context);
  if (!ring.is_flash)
    for (const RingPart& part : own_parts(ring.shape, ring.rank)) {
      const ScratchScope of_part(c.scratch);
      const PartResults its =
          math_part_forward(c, ring.dropout_with(ring.rank), ring.own_operands(part, qkv));
      Ring::rows_of(sum, part.queries).copy_(its.out);
      states.lse->narrow(1, part.queries.first, part.queries.n).copy_(its.lse);
    }
  ring.for_others([&](int to, int from) {
    const ScratchScope of_step(c.scratch);
    const auto given = part_with(ring.shape, to, ring.rank),
               taken = part_with(ring.shape, ring.rank, from);
    const at::Tensor sent = given ? ring.packed(o.qkv, given->keys) : at::Tensor(),
                     keys = taken ? ring.room(taken->keys, o.qkv->scalar_type()) : at::Tensor();
    ring.exchange(sent, to, keys, from);
    if (!taken) return;
    const PartOperands operands = ring.operands(*taken, qkv, ring.widened(keys));
    const Dropout dropout = ring.dropout_with(from);
    const PartResults its =
        ring.is_flash ? flash_part_forward(c, dropout, operands, states.seeds->select(0, from))
                      : math_part_forward(c, dropout, operands);
    merge(c, ring.with.heads, Ring::rows_of(sum, taken->queries),
          states.lse->narrow(1, taken->queries.first, taken->queries.n), its);
  });
  if (sum.const_data_ptr() != o.context->const_data_ptr()) o.context->copy_(sum);
}

void ring_backward(const OpCall& c) {
  const Ring ring(c);
  const ScratchScope scope(c.scratch);
  const auto o = c.operands<AttentionGrads>();
  const auto states = c.kept<RingAttentionStates>();
  const int64_t W = ring.W, K = ring.K;
  const at::Tensor qkv = ring.widened(o.qkv), d_context = ring.widened(o.d_context),
                   context = ring.widened(o.context);
  at::Tensor sum = o.d_qkv;
  if (ring.is_flash) {
    std::array own_states = {*states.lse, states.seeds->select(0, ring.rank)};
    const Attention attention = ring.own_attention();
    const at::Tensor no_bias;
    gpu::flash_backward({attention, c.batch, o.d_context, o.qkv, own_states, o.context, o.d_qkv,
                         no_bias, c.scratch});
  }
  if (sum.scalar_type() != at::kFloat) sum = c.scratch.take(sum.sizes(), at::kFloat).copy_(o.d_qkv);
  const auto given_of = [&](const RingPart& part, int other) -> PartGradients {
    return {.d_out = Ring::rows_of(d_context, part.queries),
            .out = Ring::rows_of(context, part.queries),
            .lse = states.lse->narrow(1, part.queries.first, part.queries.n),
            .seeds = states.seeds->select(0, other)};
  };
  if (!ring.is_flash) {
    sum.zero_();
    for (const RingPart& part : own_parts(ring.shape, ring.rank)) {
      const ScratchScope of_part(c.scratch);
      const PartGradientsOut its = math_part_backward(
          c, ring.dropout_with(ring.rank), ring.own_operands(part, qkv), given_of(part, ring.rank));
      at::Tensor rows = Ring::rows_of(sum, part.queries);
      rows.narrow(1, 0, W).copy_(its.dq);
      rows.narrow(1, W, K).copy_(its.dk);
      rows.narrow(1, W + K, K).copy_(its.dv);
    }
  }
  ring.for_others([&](int to, int from) {
    const ScratchScope of_step(c.scratch);
    const auto given = part_with(ring.shape, to, ring.rank),
               taken = part_with(ring.shape, ring.rank, from);
    const at::ScalarType type = o.qkv->scalar_type();
    const at::Tensor sent = given ? ring.packed(o.qkv, given->keys) : at::Tensor(),
                     keys = taken ? ring.room(taken->keys, type) : at::Tensor();
    ring.exchange(sent, to, keys, from);
    // Gradients of keys and values go back to where these came from.
    const at::Tensor d_keys = taken ? ring.room(taken->keys, type) : at::Tensor(),
                     d_sent = given ? ring.room(given->keys, type) : at::Tensor();
    if (taken) {
      const ScratchScope of_part(c.scratch);
      const PartOperands operands = ring.operands(*taken, qkv, ring.widened(keys));
      const PartGradients grads = given_of(*taken, from);
      const Dropout dropout = ring.dropout_with(from);
      const PartGradientsOut its = ring.is_flash ? flash_part_backward(c, dropout, operands, grads)
                                                 : math_part_backward(c, dropout, operands, grads);
      Ring::rows_of(sum, taken->queries).narrow(1, 0, W).add_(its.dq);
      d_keys[0].copy_(its.dk);
      d_keys[1].copy_(its.dv);
    }
    ring.exchange(d_keys, from, d_sent, to);
    if (!given) return;
    at::Tensor rows = Ring::rows_of(sum, given->keys);
    rows.narrow(1, W, K).add_(d_sent[0]);
    rows.narrow(1, W + K, K).add_(d_sent[1]);
  });
  if (sum.const_data_ptr() != o.d_qkv->const_data_ptr()) o.d_qkv->copy_(sum);
}

}  // namespace

void run_ring_attention(const OpCall& c) {
  if (c.part == Part::backward) return ring_backward(c);
  ring_forward(c);
}

}  // namespace ferry::ops
