#include "models/kv_cache.h"

#include <algorithm>

#include "models/core/compile.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/bytes.h"

namespace ferry {

using ops::stacked_bytes;

const Op* attention_of(const BlockTable& block) {
  for (const Op& op : block.compiled->program.ops)
    if (op.kind == OpKind::attention) return &op;
  return nullptr;
}

int64_t cache_bytes_each(const BlockTable& block, DType compute, const CacheShape& cache) {
  const Op* attention = attention_of(block);
  if (!attention) return 0;
  const OpAttributes& with = attention->with;
  return round_up(cache.n_places * cache.n_tokens * with.n_kv_heads * with.head_width *
                      static_cast<int64_t>(size_of(compute)),
                  kTensorAlignment_bytes);
}

int64_t cache_bytes(const ModelTable& model, const CacheShape& cache) {
  int64_t n_bytes = 0;
  for (const BlockTable& block : model.blocks)
    n_bytes += 2 * cache_bytes_each(block, model.compute, cache);
  return n_bytes;
}

int64_t cached_attention_scratch_bytes(const ModelTable& model, const CacheShape& cache) {
  int64_t n_heads = 0, width = 0;
  for (const BlockTable& block : model.blocks)
    if (const Op* attention = attention_of(block)) {
      n_heads = std::max(n_heads, attention->with.n_heads);
      width = std::max(width, attention->with.n_heads * attention->with.head_width);
    }
  // Scores and probabilities, both also in fp32, and the result, of one token at a time.
  return 4 * stacked_bytes(n_heads * cache.n_tokens * ops::kF32_bytes) +
         stacked_bytes(width * ops::kF32_bytes);
}

}  // namespace ferry
