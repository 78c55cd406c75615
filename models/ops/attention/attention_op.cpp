#include "models/ops/attention/attention_op.h"

#include <fmt/format.h>
#include <algorithm>

#include "models/ops/column_sum.h"
#include "models/ops/rotary/rotary_op.h"

namespace ferry::ops {

namespace {

/** No attention kernel of LibTorch's caps scores. */
bool is_capped_on_gpu(const OpCase& c) {
  return c.op.with<AttentionAttributes>().scores.soft_cap > 0 && c.target.is_cuda();
}

ScratchNeed attention_part_scratch(const OpCase& c, Part part) {
  const auto& with = c.op.with<AttentionAttributes>();
  const ScratchNeed need = is_capped_on_gpu(c)
                               ? capped_attention_scratch(c.target.compute, c.shape, with.heads)
                               : attention_scratch(c.target.attention, c.target.compute, c.shape,
                                                   with.heads, c.target.gpu_multiprocessors);
  if (part == Part::forward)
    return {.forward_bytes = need.forward_bytes, .library_bytes = need.library_bytes};
  const int64_t bias =
      with.sums_bias ? column_sum_bytes(c, values_of<AttentionValues>(c.op).qkv) : 0;
  return {.forward_bytes = std::max(need.backward_bytes, bias),
          .library_bytes = need.library_bytes};
}

void add_attention_work(BlockWork& work, const OpCase& c, const Call& call) {
  const auto& with = c.op.with<AttentionAttributes>();
  const bool is_backward = call.part == Part::backward;
  work.attention_tokens = c.shape.tokens;
  work.attention_length = c.shape.max_length;
  work.attention_width = with.heads.width();
  work.attention_causal = with.causal;
  work.attention_window = with.scores.window;
  if (is_capped_on_gpu(c)) {
    // Products and probabilities go through memory, and each head of keys by itself.
    const int64_t n_scores = c.shape.tokens * c.shape.max_length * with.heads.n_heads;
    work.memory_bytes += (is_backward ? 8 : 4) * n_scores * kF32_bytes;
    work.n_kernels +=
        static_cast<int>(c.shape.n_seqs_max * with.heads.n_kv_heads) * (is_backward ? 12 : 4);
  }
  if (!is_backward) {
    work.n_kernels += 4;  // with copies of what it returns
    work.n_operations += 4;
    return;
  }
  // Three gradients are put together.
  work.memory_bytes += c.traffic(values_of<AttentionValues>(c.op).qkv, 2);
  work.n_kernels += 6 + (with.sums_bias ? 3 : 0);
  work.n_operations += 2 + (with.sums_bias ? 1 : 0);
}

}  // namespace

std::string attention_text(const Op& op) {
  const auto& with = op.with<AttentionAttributes>();
  return fmt::format("{}{} scale {} window {} soft_cap {} dropout {} random {}{}",
                     text_of(with.heads), with.causal ? " causal" : "", with.scores.scale,
                     with.scores.window, with.scores.soft_cap, with.dropout, with.random,
                     with.sums_bias ? " sums the bias" : "");
}

void plan_attention_backward(BackwardPlanner& p, const Op& op) {
  const auto v = values_of<AttentionValues>(op);
  AttentionGrads<int> places = {.d_context = p.take_grad(v.context),
                                .qkv = p.data(v.qkv),
                                .context = p.data(v.context),
                                .d_qkv = kNone};
  std::vector<int> states = p.states(p.op());
  places.d_qkv = p.grad_place(v.qkv, /*adds=*/false).place;
  p.call(p.op(), Part::backward, places, std::move(states));
}

const OpDef kAttention = {
    .name = "attention",
    .values = AttentionValues<int>::kNames,
    .n_inputs = 1,
    .params = AttentionParams<int>::kNames,
    .attributes = attention_text,
    .states = [](const OpCase& c) -> std::vector<SavedSpec> {
      if (is_capped_on_gpu(c)) return {};
      return attention_saved(c.target.attention, c.target.compute, c.shape,
                             c.op.with<AttentionAttributes>().heads.n_heads);
    },
    .plan_backward = plan_attention_backward,
    .scratch = attention_part_scratch,
    .add_work = add_attention_work,
    .may_be_graph =
        [](const OpCase& c) { return c.op.with<AttentionAttributes>().scores.soft_cap == 0; },
};

}  // namespace ferry::ops
