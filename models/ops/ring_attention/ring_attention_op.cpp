#include "models/ops/ring_attention/ring_attention_op.h"

#include <algorithm>

#include "models/ops/ring_attention/part_scratch.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

namespace {

bool is_flash(const OpCase& c) {
  return c.target.attention == AttentionBackend::flash;
}

/** Scratch of run_ring_attention.cpp. */
ScratchNeed ring_scratch(const OpCase& c, Part part) {
  const AttentionHeads& heads = c.op.with<AttentionAttributes>().heads;
  const int64_t T = c.shape.tokens, W = heads.width(), K = heads.n_kv_heads * heads.head_width;
  const bool is_backward = part == Part::backward, is_wide = c.target.compute == DType::f32;
  const auto f32 = [](int64_t n) { return stacked_bytes(n * kF32_bytes); };
  const int64_t message = stacked_bytes(c.compute_bytes(2 * T * K));
  const int64_t sums = is_backward ? f32(T * heads.qkv_width()) : f32(T * W);
  const int64_t messages = (is_backward ? 4 : 2) * message;
  const int64_t merge = is_backward ? 0 : 3 * f32(heads.n_heads * T) + f32(T * W);
  if (is_flash(c)) {
    const int64_t library = attention_scratch(c.target.attention, c.target.compute, c.shape, heads,
                                              c.target.gpu_multiprocessors)
                                .library_bytes;
    return {.forward_bytes =
                sums + messages + merge + flash_part_scratch_bytes(c.target.compute, heads, T),
            .library_bytes = library};
  }
  const int64_t copies =
      is_wide ? 0
              : f32(T * heads.qkv_width()) + (is_backward ? 2 * f32(T * W) : 0) + f32(2 * T * K);
  const ScratchNeed its = math_part_scratch(heads, T);
  return {.forward_bytes = sums + messages + merge + copies +
                           (is_backward ? its.backward_bytes : its.forward_bytes)};
}

/** Other ranks whose keys the tokens of a rank see, at most. */
int64_t ranks_seen(const OpCase& c) {
  const auto& with = c.op.with<AttentionAttributes>();
  int64_t length = c.shape.stream(1).max_length;
  if (with.scores.window > 0) length = std::min(length, with.scores.window);
  const int64_t n = (length + c.shape.tokens - 1) / c.shape.tokens;
  return std::min<int64_t>(n, c.n_sharing() - 1);
}

void add_ring_work(BlockWork& work, const OpCase& c, const Call& call) {
  const auto& with = c.op.with<AttentionAttributes>();
  const bool is_backward = call.part == Part::backward;
  const int64_t n_seen = ranks_seen(c), T = c.shape.tokens;
  int64_t length = c.shape.stream(1).max_length;
  // The last rank of a long sequence has the most to do, and the others wait for it: its tokens see
  // 2 length - T of the tokens where half of them are hidden.
  if (with.causal && length > T) length = 2 * length - T;
  work.attention_tokens = T;
  work.attention_length = length;
  work.attention_width = with.heads.width();
  work.attention_causal = with.causal;
  work.attention_window = with.scores.window;
  const int64_t message = c.compute_bytes(2 * T * with.heads.n_kv_heads * with.heads.head_width);
  work.exchanged_bytes += (is_backward ? 2 : 1) * n_seen * message;
  const auto v = values_of<AttentionValues>(c.op);
  // Sums in fp32 are read and written for the keys of each rank.
  work.memory_bytes += (n_seen + 1) * 4 * c.traffic(is_backward ? v.qkv : v.context, 1);
  const auto n = static_cast<int>(n_seen);
  work.n_kernels += 6 + n * (is_backward ? 18 : 16);
  work.n_operations += 4 + n * (is_backward ? 12 : 14);
}

}  // namespace

const OpDef kRingAttention = {
    .name = "ring_attention",
    .values = AttentionValues<int>::kNames,
    .n_inputs = 1,
    .attributes = attention_text,
    .states = [](const OpCase& c) -> std::vector<SavedSpec> {
      const AttentionHeads& heads = c.op.with<AttentionAttributes>().heads;
      return {{"ring_attention.lse", {heads.n_heads, c.shape.tokens}, DType::f32},
              {"ring_attention.seeds", {c.n_sharing(), 2}, DType::i64}};
    },
    .plan_backward = plan_attention_backward,
    .scratch = ring_scratch,
    .add_work = add_ring_work,
    // Ranks that record a graph would not meet those that do not.
    .may_be_graph = [](const OpCase&) { return false; },
};

}  // namespace ferry::ops
