#pragma once
// Scratch of attention by parts of the keys (part_attention.h), torch-free.

#include <algorithm>

#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

/** Scratch of math_part_forward() and math_part_backward(), of so many queries and keys at most. */
inline ScratchNeed math_part_scratch(const AttentionHeads& heads, int64_t n_tokens) {
  const int64_t W = heads.width(), K = heads.n_kv_heads * heads.head_width, H = heads.n_heads;
  const int64_t n_scores =
      std::min(H * n_tokens * n_tokens, std::max(kCappedScores_max, H * n_tokens));
  const auto f32 = [](int64_t n) { return stacked_bytes(n * kF32_bytes); };
  const int64_t rows = f32(n_tokens * W), key_rows = f32(n_tokens * K), sums = f32(H * n_tokens),
                scores = f32(n_scores);
  const int64_t hidden = 2 * f32(n_tokens) + f32(n_scores / H) + stacked_bytes(n_scores / H);
  return {.forward_bytes = 3 * rows + 2 * key_rows + 3 * sums + scores + hidden,
          .backward_bytes = 4 * rows + 6 * key_rows + 2 * sums + 2 * scores + hidden};
}

/** Scratch of flash_part_forward() and flash_part_backward(). */
inline int64_t flash_part_scratch_bytes(DType type, const AttentionHeads& heads, int64_t n_tokens) {
  const int64_t rows = n_tokens * heads.width() * static_cast<int64_t>(size_of(type));
  return 2 * stacked_bytes(8) + stacked_bytes(heads.n_heads * n_tokens * kF32_bytes) +
         2 * stacked_bytes(rows);
}

}  // namespace ferry::ops
