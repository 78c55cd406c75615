#include "models/ops/attention/attention.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/attention/cached_attention.h"
#include "models/ops/dropout/dropout_residual.h"
#include "models/ops/run.h"

namespace ferry::ops {

void run_attention(const OpCall& c) {
  const auto& with = c.op.with<AttentionAttributes>();
  const SharingRanks* const ranks = c.batch.sharing_ranks;
  const int n_ranks = ranks ? ranks->world() : 1, rank = ranks ? ranks->rank() : 0;
  // The kernels of a GPU draw by a rank's own heads: the same key would repeat masks.
  constexpr uint64_t kOtherKey = 0x9E3779B97F4A7C15;
  Dropout dropout = dropout_of(c.key, with.random, with.dropout, 0);
  if (c.target.is_cuda()) dropout.key ^= static_cast<uint64_t>(rank) * kOtherKey;
  const Attention attention = {.backend = c.target.attention,
                               .n_heads = with.heads.n_heads,
                               .dropout = dropout,
                               .n_kv_heads = with.heads.n_kv_heads,
                               .causal = with.causal,
                               .scale = with.scores.scale,
                               .window = with.scores.window,
                               .soft_cap = with.scores.soft_cap,
                               .n_all_heads = with.heads.n_heads * n_ranks,
                               .first_head = with.heads.n_heads * rank};
  if (c.part == Part::forward) {
    const auto o = c.operands<AttentionValues>();
    if (!c.batch.cache_places.empty()) {
      append_to_cache(attention, c.batch, o.qkv, c.memory.cache);
      if (has_cached_tokens(c.batch))
        return cached_attention(attention, c.batch, o.qkv, c.memory.cache, o.context, c.scratch);
    }
    return attention_forward(attention, c.batch, o.qkv, c.states, o.context, c.scratch);
  }
  const auto o = c.operands<AttentionGrads>();
  at::Tensor& d_bias = c.grads<AttentionParams>().bias;
  attention_backward(attention, c.batch, o.d_context, o.qkv, c.states, o.context, o.d_qkv, d_bias,
                     c.scratch);
  // A cap makes softmax see what is added to all scores of a row.
  if (!d_bias.defined() || with.scores.soft_cap > 0) return;
  // A key bias adds the same to every score of a row, which softmax does not see: its gradient is
  // zero. The sum holds rounding error there, which AdamW would blow up to full steps.
  const AttentionHeads& heads = with.heads;
  d_bias.narrow(0, heads.width(), heads.n_kv_heads * heads.head_width).zero_();
}

}  // namespace ferry::ops
