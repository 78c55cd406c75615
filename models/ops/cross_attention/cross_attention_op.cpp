#include "models/ops/cross_attention/cross_attention_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

int64_t DistanceBuckets::of(int64_t distance) const {
  const int64_t half = both_ways ? n / 2 : n, exact = half / 2;
  const int64_t first = both_ways && distance > 0 ? half : 0;
  const int64_t far = both_ways ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  if (far < exact) return first + far;
  // In fp32, as transformers does: which bucket a distance is in must not differ.
  const float share =
      std::log(static_cast<float>(far) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto beyond = static_cast<int64_t>(share * static_cast<float>(half - exact));
  return first + std::min(exact + beyond, half - 1);
}

namespace {

std::string cross_attention_attributes(const Op& op) {
  const auto& with = op.with<CrossAttentionAttributes>();
  return fmt::format("heads {} scale {} causal {} stream {} buckets {} {} {}", with.n_heads,
                     with.scale, with.causal, with.kv_stream, with.buckets.n,
                     with.buckets.max_distance, with.buckets.both_ways);
}

/** The tensors that run_cross_attention.cpp takes for one sequence. */
ScratchNeed cross_attention_scratch(const OpCase& c, Part part) {
  const auto& with = c.op.with<CrossAttentionAttributes>();
  const int64_t width = c.columns(values_of<CrossAttentionValues>(c.op).q);
  const int64_t n = c.shape.max_length, n_keys = c.shape.stream(with.kv_stream).max_length;
  const int64_t rows = stacked_bytes(n * width * kF32_bytes),
                key_rows = stacked_bytes(n_keys * width * kF32_bytes),
                scores = stacked_bytes(with.n_heads * n * n_keys * kF32_bytes),
                pairs = stacked_bytes(n * n_keys * kF32_bytes);
  const int64_t forward = 2 * rows + 2 * key_rows + 2 * scores + 6 * pairs;
  if (part != Part::backward) return {.forward_bytes = forward};
  return {.forward_bytes = forward + 2 * rows + 2 * key_rows + 2 * scores + pairs};
}

}  // namespace

const OpDef kCrossAttention = {
    .name = "cross_attention",
    .values = CrossAttentionValues<int>::kNames,
    .n_inputs = 3,
    .attributes = cross_attention_attributes,
    .plan_backward =
        [](BackwardPlanner& p, const Op& op) {
          const auto v = values_of<CrossAttentionValues>(op);
          CrossAttentionGrads<int> places = {.d_context = p.take_grad(v.context),
                                             .q = p.data(v.q),
                                             .kv = p.data(v.kv),
                                             .bias = v.bias == kNone ? kNone : p.data(v.bias)};
          places.dq = p.grad_place(v.q, /*adds=*/false).place;
          places.dkv = p.grad_place(v.kv, /*adds=*/false).place;
          const auto [d_bias, sum] = p.grad_place(v.bias, /*adds=*/true);
          places.d_bias = d_bias;
          places.sum = sum;
          p.call(p.op(), Part::backward, places);
        },
    .scratch = cross_attention_scratch,
    .add_work =
        [](BlockWork& work, const OpCase& c, const Call& call) {
          const auto v = values_of<CrossAttentionValues>(c.op);
          const auto& with = c.op.with<CrossAttentionAttributes>();
          const bool is_backward = call.part == Part::backward;
          const int64_t length = c.shape.stream(with.kv_stream).max_length;
          work.attention_tokens += c.rows(v.q);
          work.attention_length = std::max(work.attention_length, length);
          work.attention_width = std::max(work.attention_width, c.columns(v.q));
          work.memory_bytes += c.traffic(v.q, 4) + c.traffic(v.kv, 2) +
                               8 * c.rows(v.q) * length * with.n_heads * kF32_bytes;
          const auto n = static_cast<int>(c.shape.n_seqs_max);
          const auto n_buckets = static_cast<int>(with.buckets.n);
          work.n_operations += n * (is_backward ? 24 + 4 * n_buckets : 10 + 4 * n_buckets);
          work.n_kernels += n * (is_backward ? 24 + 4 * n_buckets : 10 + 4 * n_buckets);
        },
    .may_be_graph = [](const OpCase&) { return false; },
};

}  // namespace ferry::ops
