#include "models/ops/scratch_sizes.h"

namespace ferry::ops {
namespace {

/** fp32 copies that the CPU works on when the compute type has 16 bits. */
ScratchNeed cpu_attention_scratch(DType type, int64_t T, const AttentionHeads& heads) {
  if (type == DType::f32) return {};
  const int64_t qkv = T * heads.qkv_width() * kF32_bytes, context = T * heads.width() * kF32_bytes;
  return {.forward_bytes = stacked_bytes(qkv, context),
          .backward_bytes = stacked_bytes(qkv, context, qkv)};
}

/** The memory-efficient backend has no grouped heads: keys and values once for each query. */
int64_t repeated_heads_bytes(DType type, int64_t T, const AttentionHeads& heads) {
  const int64_t one = T * heads.width() * static_cast<int64_t>(size_of(type));
  return heads.is_grouped() ? stacked_bytes(one, one) : 0;
}

/** The bytes that _flash_attention_forward and _backward of LibTorch 2.11 allocate. With
 * deterministic sums the backward pass holds dq once per split. The number of splits depends on
 * the sequences, so this is the largest over all sequence counts that this shape may have. For
 * grouped heads it makes dk and dv for each query's first, then adds them up. */
int64_t flash_library_bytes(DType type,
                            const BatchShape& shape,
                            const AttentionHeads& heads,
                            int gpu_multiprocessors) {
  const int64_t T = shape.tokens, head_width = heads.head_width, n_heads = heads.n_heads;
  const int64_t element_bytes = static_cast<int64_t>(size_of(type));
  const int64_t row_bytes = heads.width() * element_bytes;
  const int64_t kv_row_bytes = heads.n_kv_heads * head_width * element_bytes;
  const int64_t forward = stacked_bytes(T * row_bytes, n_heads * T * kF32_bytes, 16, 8);
  const int64_t rounded_width = round_up(head_width, head_width <= 128 ? 32 : 64);
  // The bytes for n sequences that fill what they can of the micro-batch: the last one of an epoch
  // has few, and the fewer there are the more each is split.
  const int64_t length = std::max<int64_t>(1, shape.max_length);
  const auto backward_bytes = [&](int64_t n_seqs) {
    const int64_t rows = std::min(T, n_seqs * length) + 128 * n_seqs;
    const int64_t pairs = n_seqs * n_heads;
    const int64_t splits = (gpu_multiprocessors + pairs - 1) / pairs;
    return stacked_bytes(n_heads * rows * kF32_bytes, std::max<int64_t>(1, splits) * rows *
                                                          n_heads * rounded_width * kF32_bytes);
  };
  const int64_t n_seqs_most = std::max({int64_t{1}, shape.n_seqs_max, (T + length - 1) / length});
  // There is one split from one sequence a multiprocessor on, and more sequences only take more.
  int64_t backward = backward_bytes(n_seqs_most);
  for (int64_t n = 1; n < n_seqs_most && n < gpu_multiprocessors; n++)
    backward = std::max(backward, backward_bytes(n));
  const int64_t gradients = stacked_bytes(T * row_bytes, T * kv_row_bytes, T * kv_row_bytes) +
                            (heads.is_grouped() ? stacked_bytes(T * row_bytes, T * row_bytes) : 0);
  return std::max(forward, gradients + backward);
}

/** Elements of the saved sums of exponentials: each sequence's rows rounded up to 32. */
int64_t efficient_lse_elements(const BatchShape& shape, int64_t n_heads) {
  return n_heads * (shape.tokens + 31 * shape.n_seqs_max);
}

/** The bytes that _efficient_attention_forward and _backward of LibTorch 2.11 allocate, all
 * sequences being of one length. Forward: output, with 16 bits and wide heads summed in fp32
 * first, and sums of exponentials. Backward: the three gradients; delta, in fp32 from a product of
 * its own; then, beside delta, fp32 sums of dq in blocks of up to 128 rows, each with a lock, with
 * 16 bits and wide heads of dk and dv, too. */
int64_t efficient_library_bytes(DType type,
                                const BatchShape& shape,
                                int64_t n_heads,
                                int64_t width) {
  const int64_t T = shape.tokens, head_width = width / n_heads;
  const int64_t output = T * width * static_cast<int64_t>(size_of(type));
  const int64_t wide = T * width * kF32_bytes, delta = n_heads * T * kF32_bytes;
  const bool is_f32 = type == DType::f32, is_wide_head = head_width > 64;
  const int64_t forward = stacked_bytes(output, efficient_lse_elements(shape, n_heads) * kF32_bytes,
                                        !is_f32 && is_wide_head ? wide : int64_t{0});
  constexpr int64_t kBlockRows = 128, kLock_bytes = 16;
  const int64_t rows = T + (kBlockRows - 1) * shape.n_seqs_max;
  const int64_t sums = n_heads * rows *
                       (round_up(head_width, is_wide_head ? 128 : 64) * kF32_bytes + kLock_bytes) *
                       (!is_f32 && is_wide_head ? 3 : 1);
  const int64_t product = is_f32 ? stacked_bytes(wide, delta, delta) : 0;
  return std::max(forward,
                  3 * stacked_bytes(output) + std::max(product, stacked_bytes(delta, sums)));
}

}  // namespace

std::vector<SavedSpec> attention_saved(AttentionBackend backend,
                                       DType type,
                                       const BatchShape& shape,
                                       int64_t n_heads) {
  switch (backend) {
    case AttentionBackend::cpu_math:
      return {{"attention.probs",
               {shape.tokens * shape.max_length * n_heads +
                shape.n_seqs_max * kProbsAlignment_elements},
               type}};
    case AttentionBackend::flash:
      return {{"attention.lse", {n_heads, shape.tokens}, DType::f32},
              {"attention.rng", {2}, DType::i64}};
    case AttentionBackend::memory_efficient:
      return {{"attention.lse", {efficient_lse_elements(shape, n_heads)}, DType::f32}};
  }
  return {};
}

ScratchNeed attention_scratch(AttentionBackend backend,
                              DType type,
                              const BatchShape& shape,
                              const AttentionHeads& heads,
                              int gpu_multiprocessors) {
  switch (backend) {
    case AttentionBackend::cpu_math:
      return cpu_attention_scratch(type, shape.tokens, heads);
    case AttentionBackend::flash:
      return {.library_bytes = flash_library_bytes(type, shape, heads, gpu_multiprocessors)};
    case AttentionBackend::memory_efficient: {
      const int64_t repeated = repeated_heads_bytes(type, shape.tokens, heads);
      return {.forward_bytes = repeated,
              .backward_bytes = repeated,
              .library_bytes = efficient_library_bytes(type, shape, heads.n_heads, heads.width())};
    }
  }
  return {};
}

ScratchNeed capped_attention_scratch(DType type,
                                     const BatchShape& shape,
                                     const AttentionHeads& heads) {
  const int64_t group = heads.n_heads / heads.n_kv_heads, length = shape.max_length;
  const int64_t n_scores = capped_scores(group, length),
                element_bytes = static_cast<int64_t>(size_of(type));
  const int64_t products = n_scores * kF32_bytes, p = n_scores * element_bytes;
  const int64_t row_sums = length * heads.head_width * kF32_bytes;
  const int64_t forward = stacked_bytes(products, p, group * row_sums);
  return {.forward_bytes = forward,
          .backward_bytes = forward + stacked_bytes(products, p, row_sums, row_sums)};
}

ScratchNeed cross_entropy_scratch(int64_t n, int64_t L) {
  const int64_t per_row = 5 * stacked_bytes(n * kF32_bytes);  // the running state, and lse
  return {.forward_bytes = per_row,
          .backward_bytes = per_row,
          .library_bytes = 4 * stacked_bytes(n * L * 8) + 12 * stacked_bytes(n * 8)};
}

ScratchNeed vocabulary_piece_scratch(
    DType type, int64_t rows, int64_t n_words, int64_t width, bool cuda, bool has_bias) {
  const int64_t columns = std::min(n_words, kVocabChunk);
  const int64_t element_bytes = static_cast<int64_t>(size_of(type));
  const int64_t logits = stacked_bytes(rows * columns * element_bytes);
  const int64_t part = type == DType::f32 ? 0 : stacked_bytes(rows * width * element_bytes);
  const int64_t bias = has_bias ? stacked_bytes(column_sum_scratch_bytes(rows, columns)) : 0;
  return {.forward_bytes = logits,
          .backward_bytes = part + logits + bias,
          .library_bytes = cuda ? 12 * stacked_bytes(rows * 8) : 0};
}

ScratchNeed vocabulary_scratch(
    DType type, int64_t rows, int64_t vocab, int64_t width, bool cuda, bool has_bias) {
  ScratchNeed need = vocabulary_piece_scratch(type, rows, vocab, width, cuda, has_bias);
  need.forward_bytes += 4 * stacked_bytes(rows * kF32_bytes);  // the running state
  if (type != DType::f32) need.backward_bytes += stacked_bytes(rows * width * kF32_bytes);
  return need;
}

}  // namespace ferry::ops
