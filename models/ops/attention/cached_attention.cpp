#include "models/ops/attention/cached_attention.h"

#include <ATen/ops/_softmax.h>
#include <ATen/ops/bmm.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/base/error.h"

namespace ferry::ops {
namespace {

/** Tokens [first, first + n) of the batch, which stand in their sequence from `begin` on. */
struct NewTokens {
  int64_t place = 0, first = 0, n = 0, begin = 0;
};

/** Calls work(tokens) for each real sequence. */
template <typename Work>
void for_sequences(const BatchTensors& batch, const Work& work) {
  for (size_t s = 0; s < batch.cache_places.size(); ++s) {
    const int64_t first = batch.cu_seqlens_host[s];
    work(NewTokens{.place = batch.cache_places[s],
                   .first = first,
                   .n = batch.cu_seqlens_host[s + 1] - first,
                   .begin = batch.cache_lengths[s]});
  }
}

int64_t head_width_of(const Attention& attention, const at::Tensor& qkv) {
  return qkv.size(1) / (attention.n_heads + 2 * attention.kv_heads());
}

/** probs (kv heads, queries of each, keys) = softmax(scale * scores), with the cap if there is one.
 * Scores are changed. */
void softmax(const Attention& attention,
             int64_t head_width,
             at::Tensor& scores,
             at::Tensor& probs,
             Scratch& scratch) {
  const ScratchScope scope(scratch);
  const double scale =
      attention.scale != 0 ? attention.scale : 1.0 / std::sqrt(static_cast<double>(head_width));
  const bool is_f32 = scores.scalar_type() == at::kFloat;
  at::Tensor wide = scores, wide_probs = probs;
  if (!is_f32) {
    wide = scratch.take(scores.sizes(), at::kFloat).copy_(scores);
    wide_probs = scratch.take(probs.sizes(), at::kFloat);
  }
  if (const double cap = attention.soft_cap; cap > 0) {
    wide.mul_(scale / cap).tanh_().mul_(cap);
  } else {
    wide.mul_(scale);
  }
  at::_softmax_out(wide_probs, wide, -1, /*half_to_float=*/false);
  if (!is_f32) probs.copy_(wide_probs);
}

}  // namespace

bool has_cached_tokens(const BatchTensors& batch) {
  return std::ranges::any_of(batch.cache_lengths, [](int32_t n) { return n > 0; });
}

void append_to_cache(const Attention& attention,
                     const BatchTensors& batch,
                     const at::Tensor& qkv,
                     KvCache& cache) {
  const int64_t d = head_width_of(attention, qkv), n_kv = attention.kv_heads();
  for_sequences(batch, [&](const NewTokens& its) {
    FERRY_CHECK(its.begin + its.n <= cache.keys.size(2), "{} tokens in a cache of {}",
                its.begin + its.n, cache.keys.size(2));
    const at::Tensor rows = qkv.narrow(0, its.first, its.n);
    int64_t column = attention.n_heads * d;
    for (at::Tensor* kept : {&cache.keys, &cache.values}) {
      const at::Tensor part = rows.narrow(1, column, n_kv * d).view({its.n, n_kv, d});
      kept->select(0, its.place).narrow(1, its.begin, its.n).copy_(part.permute({1, 0, 2}));
      column += n_kv * d;
    }
  });
}

void cached_attention(const Attention& attention,
                      const BatchTensors& batch,
                      const at::Tensor& qkv,
                      const KvCache& cache,
                      at::Tensor& context,
                      Scratch& scratch) {
  FERRY_CHECK(attention.causal && attention.dropout.p == 0, "kept keys are a causal model's");
  const int64_t d = head_width_of(attention, qkv), n_kv = attention.kv_heads();
  const int64_t group = attention.n_heads / n_kv;
  const at::ScalarType type = qkv.scalar_type();
  for_sequences(batch, [&](const NewTokens& its) {
    const at::Tensor keys = cache.keys.select(0, its.place),
                     values = cache.values.select(0, its.place);
    for (int64_t t = 0; t < its.n; ++t) {
      const ScratchScope scope(scratch);
      const int64_t end = its.begin + t + 1;
      const int64_t first = attention.window > 0 ? std::max<int64_t>(0, end - attention.window) : 0;
      const int64_t n_seen = end - first;
      const at::Tensor q =
          qkv.select(0, its.first + t).narrow(0, 0, n_kv * group * d).view({n_kv, group, d});
      at::Tensor scores = scratch.take({n_kv, group, n_seen}, type);
      at::Tensor probs = scratch.take({n_kv, group, n_seen}, type);
      at::bmm_out(scores, q, keys.narrow(1, first, n_seen).transpose(1, 2));
      softmax(attention, d, scores, probs, scratch);
      at::Tensor out = context.select(0, its.first + t).view({n_kv, group, d});
      at::bmm_out(out, probs, values.narrow(1, first, n_seen));
    }
  });
}

}  // namespace ferry::ops
