#pragma once
// The embeddings: sums of rows of up to three tables. Ids are not checked here: the caller's batch
// has valid ones.

#include "models/ops/operation.h"

namespace ferry::ops {

/** sum[t] = word_scale * word[ids[t]] + position[position_ids[t]] + type[type_ids[t]]. Of a piece
 * of the words' table, which has rows for the ids [first_word, first_word + n_words), it writes the
 * rows of these ids alone. */
struct EmbeddingForward {
  Extent extent;
  float word_scale = 1;
  int64_t first_word = 0, n_words = 0;
  const int32_t* ids = nullptr;           // (T), or null: word_table has a row for each token
  const int32_t* type_ids = nullptr;      // (T), unread without type_table
  const int32_t* position_ids = nullptr;  // (T), unread without position_table
  const void* word_table = nullptr;       // (n_words, W)
  const void* type_table = nullptr;       // (n_types, W) or null
  const void* position_table = nullptr;   // (n_positions, W) or null
  void* sum = nullptr;                    // (T, W)
};

/** d_table[r] = scale * sum of dx[t] over the t with ids[t] == first_row + r, added in ascending t;
 * rows without one become zero. One call a table or piece of one. CUDA: O(T^2) integer comparisons
 * (T = 65,536: under 1 ms) in place of a library's sort, whose scratch could not be planned without
 * a GPU. Scratch: embedding_backward_scratch_bytes. */
struct EmbeddingBackward {
  Extent extent;
  float scale = 1;
  const int32_t* ids = nullptr;  // (T)
  int64_t first_row = 0, n_rows = 0;
  const void* dx = nullptr;  // (T, W)
  void* d_table = nullptr;   // (n_rows, W)
};

struct EmbeddingKernels {
  Kernel<EmbeddingForward> embedding_forward;
  Kernel<EmbeddingBackward> embedding_backward;
};
extern const EmbeddingKernels kCpuEmbedding, kCudaEmbedding;

/** The same on tensors, undefined standing for null: a d_table that is undefined is not computed.
 * Without a word table the positions stand alone. `first_word`: of a table that is a piece. */
void embedding_forward(const BatchTensors& batch,
                       const at::Tensor& word,
                       const at::Tensor& position,
                       const at::Tensor& type,
                       at::Tensor& sum,
                       float word_scale = 1,
                       int64_t first_word = 0);
/** The same with words (T, W) that were looked up before. */
void add_embeddings(const BatchTensors& batch,
                    const at::Tensor& words,
                    const at::Tensor& position,
                    const at::Tensor& type,
                    at::Tensor& sum);
void embedding_backward(const at::Tensor& ids,
                        const at::Tensor& dx,
                        at::Tensor& d_table,
                        Scratch& scratch,
                        float scale = 1,
                        int64_t first_row = 0);

}  // namespace ferry::ops
