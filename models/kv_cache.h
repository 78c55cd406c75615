#pragma once
// The size of the keys and values that a generation keeps, so that each token goes through the
// model once: one region a run, in it one block's after another's. The plan counts them, and the
// engine cuts its region by the same numbers. Torch-free.

#include <cstdint>

#include "models/core/block_program.h"

namespace ferry {

struct CacheShape {
  int64_t n_places = 0;  ///< sequences at once
  int64_t n_tokens = 0;  ///< of each, at most
};

/** The block's attention; null: it has none. */
const Op* attention_of(const BlockTable& block);

/** Bytes of a block's keys, and as many of its values; 0: it has no attention. */
int64_t cache_bytes_each(const BlockTable& block, DType compute, const CacheShape& cache);
/** Bytes of all blocks' keys and values. */
int64_t cache_bytes(const ModelTable& model, const CacheShape& cache);

/** The sequences of a micro-batch of the largest shape without its dummy tail, which is cut into
 * sequences as long as the longest. */
inline int64_t cache_places_of(const BatchShape& largest) {
  return largest.n_seqs_max - (largest.tokens + largest.max_length - 1) / largest.max_length;
}

/** Scratch that attention over kept keys takes, of the block that takes most. */
int64_t cached_attention_scratch_bytes(const ModelTable& model, const CacheShape& cache);

}  // namespace ferry
