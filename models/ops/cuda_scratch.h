#pragma once
// Scratch bytes of the CUDA kernels, and of column sums on CPU and GPU, from sizes
// alone: the tensor tables plan with them where there is neither torch nor CUDA. The constants also
// split the kernels' sums, so they are part of a run's bits.

#include <cstdint>

#include "src/base/bytes.h"

namespace ferry::ops {

/** Rows of one first-stage partial sum of columns, on a CPU as on CUDA. */
inline constexpr int64_t kSumChunkRows = 64;

constexpr int64_t n_sum_chunks(int64_t T) {
  return (T + kSumChunkRows - 1) / kSumChunkRows;
}
/** Column sum of a (T, N) matrix, and an activation's backward. */
constexpr int64_t column_sum_scratch_bytes(int64_t T, int64_t N) {
  return n_sum_chunks(T) * N * 4;
}

}  // namespace ferry::ops

namespace ferry::ops::cuda {

/** Blocks of a norm's backward: two on each multiprocessor of the largest GPUs of today. */
inline constexpr int kNormBackwardBlocks = 264;
/** Ranked tokens of one first-stage partial sum of an embedding's gradient. */
inline constexpr int kEmbeddingChunkRows = 32;

constexpr int64_t n_norm_backward_blocks(int64_t T) {
  return T < kNormBackwardBlocks ? T : kNormBackwardBlocks;
}
constexpr int64_t n_embedding_chunks(int64_t T) {
  return (T + kEmbeddingChunkRows - 1) / kEmbeddingChunkRows;
}
/** Bytes of the ranked order that precedes an embedding's partial sums. */
constexpr int64_t embedding_order_bytes(int64_t T) {
  return round_up(T * 4, kTensorAlignment_bytes);
}

/** dropout_residual_norm_backward and norm_dropout_backward of (T, W). */
constexpr int64_t norm_backward_scratch_bytes(int64_t T, int64_t W) {
  return n_norm_backward_blocks(T) * 3 * W * 4;
}
/** residual_rms_norm_backward of (T, W). */
constexpr int64_t rms_norm_backward_scratch_bytes(int64_t T, int64_t W) {
  return n_norm_backward_blocks(T) * W * 4;
}
/** The widest head that head_norm takes. */
inline constexpr int kHeadNormWidth_max = 512;
/** head_norm_backward of T tokens. */
constexpr int64_t head_norm_backward_scratch_bytes(int64_t T, int64_t head_width) {
  return n_norm_backward_blocks(T) * 2 * head_width * 4;
}
/** embedding_backward of (T, W), whatever the table's rows. */
constexpr int64_t embedding_backward_scratch_bytes(int64_t T, int64_t W) {
  return embedding_order_bytes(T) + n_embedding_chunks(T) * 2 * W * 4;
}

}  // namespace ferry::ops::cuda
