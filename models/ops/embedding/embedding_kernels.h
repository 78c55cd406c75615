#pragma once
// The embeddings' kernels. Ids are not checked here: the caller's batch has valid ones.

#include "models/ops/kernel.h"

namespace ferry::ops {

/** sum[t] = word[ids[t]] + position[position_ids[t]] + type[type_ids[t]]. */
struct EmbeddingForward {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
  const int32_t* ids = nullptr;           // (T)
  const int32_t* type_ids = nullptr;      // (T), unread without type_table
  const int32_t* position_ids = nullptr;  // (T), unread without position_table
  const void* word_table = nullptr;       // (n_words, W)
  const void* type_table = nullptr;       // (n_types, W) or null
  const void* position_table = nullptr;   // (n_positions, W) or null
  void* sum = nullptr;                    // (T, W)
};

/** d_table[r] = sum of dx[t] over the t with ids[t] == r, added in ascending t; rows without one
 * become zero. One call a table. CUDA: O(T^2) integer comparisons (T = 65,536: under 1 ms) in place
 * of a library's sort, whose scratch could not be planned without a GPU. Scratch:
 * embedding_backward_scratch_bytes. */
struct EmbeddingBackward {
  DType type = DType::f32;
  int64_t T = 0, W = 0;
  const int32_t* ids = nullptr;  // (T)
  int64_t n_rows = 0;
  const void* dx = nullptr;  // (T, W)
  void* d_table = nullptr;   // (n_rows, W)
};

struct EmbeddingKernels {
  Kernel<EmbeddingForward> embedding_forward;
  Kernel<EmbeddingBackward> embedding_backward;
};
namespace cpu {
extern const EmbeddingKernels kEmbedding;
}
namespace cuda {
extern const EmbeddingKernels kEmbedding;
}

}  // namespace ferry::ops
