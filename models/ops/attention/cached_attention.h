#pragma once
// Attention of new tokens over the kept keys and values of their sequences, in a generation. One
// token after another by its definition, on ATen's operations: the same code on a CPU and a GPU.

#include "models/ops/attention/attention.h"

namespace ferry::ops {

/** True where the batch goes on with sequences that have kept keys and values. */
bool has_cached_tokens(const BatchTensors& batch);

/** Puts the keys and values of all real tokens behind those that are kept of their sequences. */
void append_to_cache(const Attention& attention,
                     const BatchTensors& batch,
                     const at::Tensor& qkv,  // (T, Q)
                     KvCache& cache);

/** context (T, W) of the batch's tokens, which see themselves and what is kept before them; the
 * cache has theirs already. Scratch: cached_attention_scratch_bytes
 * (models/blocks/generation_memory.h).
 */
void cached_attention(const Attention& attention,
                      const BatchTensors& batch,
                      const at::Tensor& qkv,  // (T, Q)
                      const KvCache& cache,
                      at::Tensor& context,
                      Scratch& scratch);

}  // namespace ferry::ops
