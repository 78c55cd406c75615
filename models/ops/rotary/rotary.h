#pragma once
// Rotary positions, in place on the queries and keys of attention's packed rows.

#include <span>

#include "models/ops/operation.h"

namespace ferry::ops {

/** Half the widest part of a head that a GPU rotates. */
inline constexpr int64_t kRotaryPairs_max = 256;

/** Rotates in place the first 2 n_pairs columns of the first n_rotated of each token's n_heads rows
 * of head_width elements, pairs (i, i + n_pairs) or interleaved (2 i, 2 i + 1), by position *
 * frequencies[i]; or back. What is rotated is multiplied by factor either way. */
struct Rotate {
  DType type = DType::f32;
  int64_t T = 0, n_heads = 0, n_rotated = 0, head_width = 0, n_pairs = 0;
  bool interleaved = false;
  float factor = 1;
  bool back = false;
  const int32_t* position_ids = nullptr;  // (T)
  const float* frequencies = nullptr;     // (n_pairs), in host memory, read before the return
  /** (n_pairs) likewise, of tokens whose position has kLongPosition; null: no position has it. */
  const float* long_frequencies = nullptr;
  void* x = nullptr;  // (T, n_heads, head_width)
};

struct RotaryKernels {
  Kernel<Rotate> rotate;
};
extern const RotaryKernels kCpuRotary, kCudaRotary;

/** Rotary positions (Su et al. 2021) as Hugging Face has them: in each head, of as many columns as
 * there are frequencies twice, elements (i, i + half), or (2 i, 2 i + 1) where they are interleaved
 * (GPT-J), are a pair, turned by position * frequencies[i], a product of fp32. Cosines and sines
 * are multiplied by factor. */
struct Rotary {
  int64_t n_heads = 0;                 ///< heads of queries
  int64_t n_kv_heads = 0;              ///< heads of keys, and of values, which are not rotated
  std::span<const float> frequencies;  ///< at most kRotaryPairs_max
  /** As many, of tokens whose position has kLongPosition (models/core/long_position.h); empty: no
   * position has it. */
  std::span<const float> long_frequencies;
  float factor = 1;
  bool interleaved = false;
};
/** Rotates in place the queries and keys of qkv (T, (n_heads + 2 n_kv_heads) D), D even;
 * position_ids (T) int32 below 2^20, kLongPosition apart. */
void rotary_forward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& qkv);
/** The gradient, likewise in place: turned back. */
void rotary_backward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& d_qkv);

}  // namespace ferry::ops
