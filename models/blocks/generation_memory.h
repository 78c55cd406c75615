#pragma once
// The memory that a generation takes beside a forward pass: keys and values, so that each token
// goes through the model once, and what the head reads and writes for the last tokens. One region a
// run; the plan counts it, and the engine cuts it by the same numbers. Torch-free.

#include <cstdint>
#include <vector>

#include "models/core/block_program.h"
#include "models/ops/scratch_sizes.h"

namespace ferry {

struct GenerationShape {
  int64_t n_sequences = 0;   ///< at once; 0: nothing is generated
  int64_t cache_tokens = 0;  ///< of each, at most, whose keys and values are kept; 0: none are
};

/** Offsets in the region, in bytes. */
struct GenerationLayout {
  int64_t last_rows = 0;        ///< (n_sequences, width): hidden states before the head
  int64_t logits = 0;           ///< (n_sequences, vocabulary) fp32
  std::vector<int64_t> keys;    ///< by block: (n_sequences, kv heads, cache_tokens, head width)
  std::vector<int64_t> values;  ///< by block: the same
  int64_t n_bytes = 0;
};

GenerationLayout make_generation_layout(const ModelTable& model, const GenerationShape& shape);

/** The heads of the block's attention; null: it has none. */
const ops::AttentionHeads* attention_heads_of(const BlockTable& block);

/** The sequences of a micro-batch of the largest shape without its dummy tail, which is cut into
 * sequences as long as the longest. */
inline int64_t n_seqs_without_tail(const BatchShape& largest) {
  return largest.n_seqs_max - (largest.tokens + largest.max_length - 1) / largest.max_length;
}

/** Scratch that attention over kept keys takes, of the block that takes most. */
int64_t cached_attention_scratch_bytes(const ModelTable& model, const GenerationShape& shape);

}  // namespace ferry
