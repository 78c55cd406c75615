#pragma once
// Scratch and saved sizes of the layer operations, torch-free: the tensor tables declare them, the
// operations take exactly them. `cuda` chooses where CPU and GPU split their sums differently.

#include <algorithm>
#include <cstdint>

#include "models/core/tensor_table.h"
#include "models/ops/cuda_scratch.h"
#include "src/base/bytes.h"

namespace ferry::ops {

inline constexpr int64_t kF32_bytes = 4;

/** Bytes of tensors taken one after another from a Scratch. */
template <typename... Sizes>
constexpr int64_t stacked_bytes(Sizes... sizes_bytes) {
  return (round_up(sizes_bytes, kTensorAlignment_bytes) + ... + int64_t{0});
}

/** Backward of a norm over (T, W), with what precedes or follows it. */
constexpr int64_t norm_backward_scratch_bytes(int64_t T, int64_t W, bool cuda) {
  return cuda ? cuda::norm_backward_scratch_bytes(T, W) : n_sum_chunks(T) * 3 * W * kF32_bytes;
}
/** Backward of an RMSNorm over (T, W). */
constexpr int64_t rms_norm_backward_scratch_bytes(int64_t T, int64_t W, bool cuda) {
  return cuda ? cuda::rms_norm_backward_scratch_bytes(T, W) : n_sum_chunks(T) * W * kF32_bytes;
}
/** Backward of the norm of each head over T tokens. */
constexpr int64_t head_norm_backward_scratch_bytes(int64_t T, int64_t head_width, bool cuda) {
  return cuda ? cuda::head_norm_backward_scratch_bytes(T, head_width)
              : n_sum_chunks(T) * 2 * head_width * kF32_bytes;
}
/** CPU: ids with their places, sorted. */
constexpr int64_t embedding_backward_scratch_bytes(int64_t T, int64_t W, bool cuda) {
  return cuda ? cuda::embedding_backward_scratch_bytes(T, W)
              : T * static_cast<int64_t>(sizeof(uint64_t));
}

/** Attention probabilities of all sequences on the CPU: each sequence's (H, length, length) starts
 * at a multiple of this many elements. */
inline constexpr int64_t kProbsAlignment_elements = 256;

/** The longest sequence that attention on a CPU takes: a row of its scores is on a thread's stack.
 */
inline constexpr int64_t kCpuSequenceTokens_max = 16 * 1024;

/** The widest row that a norm on a GPU takes: a block of threads holds it in registers. */
inline constexpr int64_t kGpuRow_bytes_max = 32 * kKiB;

/** Columns of the vocabulary whose logits exist at a time in the language-model head. Part of a
 * run's identity. */
inline constexpr int64_t kVocabChunk = 4096;

/** The tensors that attention keeps from its forward pass for its backward pass, besides qkv and
 * its output:
 *  cpu_math          "attention.probs" (elements), of the compute type
 *  flash             "attention.lse" (H, T) fp32, "attention.rng" (2) int64: seed and offset
 *  memory_efficient  "attention.lse" (elements) fp32: (H, length rounded up to 32) a sequence */
std::vector<SavedSpec> attention_saved(AttentionBackend backend,
                                       DType type,
                                       const BatchShape& shape,
                                       int64_t n_heads);

/** Heads of attention: a row of queries, keys and values has qkv_width() elements. */
struct AttentionHeads {
  int64_t n_heads = 0;     ///< heads of queries
  int64_t n_kv_heads = 0;  ///< heads of keys and values, which n_heads / n_kv_heads queries share
  int64_t head_width = 0;

  int64_t width() const { return n_heads * head_width; }
  int64_t qkv_width() const { return (n_heads + 2 * n_kv_heads) * head_width; }
  bool is_grouped() const { return n_kv_heads != n_heads; }
};

/** The columns of some heads, of which each of several ranks has as many. Where the ranks are more
 * than the heads, each has one head, and ranks that follow each other have the same. */
struct SharedHeads {
  int64_t columns = 0;     ///< of all heads
  int64_t head_width = 1;  ///< 1: columns are shared one by one

  int64_t n_own(int n_ranks) const { return std::max(columns / n_ranks, head_width); }
  int64_t first_of(int rank, int n_ranks) const {
    return rank * columns / n_ranks / n_own(n_ranks) * n_own(n_ranks);
  }
  /** No rank before it has the same columns. */
  bool has_first(int rank, int n_ranks) const {
    return rank == 0 || first_of(rank - 1, n_ranks) != first_of(rank, n_ranks);
  }
};

/** Scratch and library bytes of attention alone, without the column sum for a bias's gradient.
 * `gpu_multiprocessors` decides how often flash's deterministic backward splits its sums. */
ScratchNeed attention_scratch(AttentionBackend backend,
                              DType type,
                              const BatchShape& shape,
                              const AttentionHeads& heads,
                              int gpu_multiprocessors);

/** Scores that attention with a soft cap makes at a time on a GPU, unless one row has more. */
inline constexpr int64_t kCappedScores_max = 16 << 20;
/** The most scores of `group` heads that are there at once, of sequences up to `length` tokens. */
constexpr int64_t capped_scores(int64_t group, int64_t length) {
  return std::min(group * length * length, std::max(kCappedScores_max, group * length));
}
/** Scratch of attention with a soft cap on a GPU. */
ScratchNeed capped_attention_scratch(DType type,
                                     const BatchShape& shape,
                                     const AttentionHeads& heads);

/** Scratch and library bytes of a classifier's loss over (n, L) logits. */
ScratchNeed cross_entropy_scratch(int64_t n, int64_t L);

/** Question answering's loss over n sequences: the losses of start and end before they are added
 * up. */
constexpr int64_t span_loss_scratch_bytes(int64_t n, bool cuda) {
  return cuda ? stacked_bytes(n * 2 * kF32_bytes) : 0;
}

/** Scratch of the language-model head's logits over `rows` rows: forward and backward, without what
 * the head itself takes. */
ScratchNeed vocabulary_scratch(
    DType type, int64_t rows, int64_t vocab, int64_t width, bool cuda, bool has_bias = true);
/** The same of a piece of so many words, whose state and sum lie elsewhere. */
ScratchNeed vocabulary_piece_scratch(
    DType type, int64_t rows, int64_t n_words, int64_t width, bool cuda, bool has_bias);

}  // namespace ferry::ops
