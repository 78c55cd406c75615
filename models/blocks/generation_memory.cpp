#include "models/blocks/generation_memory.h"

#include <algorithm>

#include "models/core/compile.h"
#include "models/ops/attention/attention_op.h"
#include "models/ops/scratch_sizes.h"
#include "src/base/bytes.h"

namespace ferry {

using ops::stacked_bytes;

const ops::AttentionHeads* attention_heads_of(const BlockTable& block) {
  for (const Op& op : block.compiled->program.ops)
    if (op.def == &ops::kAttention) return &op.with<ops::AttentionAttributes>().heads;
  return nullptr;
}

GenerationLayout make_generation_layout(const ModelTable& model, const GenerationShape& shape) {
  GenerationLayout layout;
  const auto next = [&layout](int64_t n_bytes) {
    const int64_t at = layout.n_bytes;
    layout.n_bytes += round_up(n_bytes, kTensorAlignment_bytes);
    return at;
  };
  const auto compute_bytes = static_cast<int64_t>(size_of(model.compute));
  layout.last_rows = next(shape.n_sequences * model.width * compute_bytes);
  layout.logits = next(shape.n_sequences * model.vocab_size * ops::kF32_bytes);
  for (const BlockTable& block : model.blocks) {
    const ops::AttentionHeads* heads = attention_heads_of(block);
    const int64_t row = heads ? heads->n_kv_heads * heads->head_width : 0;
    for (std::vector<int64_t>* kept : {&layout.keys, &layout.values})
      kept->push_back(next(shape.n_sequences * shape.cache_tokens * row * compute_bytes));
  }
  return layout;
}

int64_t cached_attention_scratch_bytes(const ModelTable& model, const GenerationShape& shape) {
  if (shape.cache_tokens == 0) return 0;
  int64_t n_heads = 0, width = 0;
  for (const BlockTable& block : model.blocks)
    if (const ops::AttentionHeads* heads = attention_heads_of(block)) {
      n_heads = std::max(n_heads, heads->n_heads);
      width = std::max(width, heads->width());
    }
  // Scores and probabilities, both also in fp32, and the result, of one token at a time.
  return 4 * stacked_bytes(n_heads * shape.cache_tokens * ops::kF32_bytes) +
         stacked_bytes(width * ops::kF32_bytes);
}

}  // namespace ferry
