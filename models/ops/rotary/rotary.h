#pragma once
// Rotary positions, in place on the queries and keys of attention's packed rows.

#include "models/ops/operation.h"

namespace ferry::ops {

/** Half the widest head that a GPU rotates. */
inline constexpr int64_t kRotaryPairs_max = 256;

/** Rotates in place the first n_rotated of each token's n_heads rows of head_width elements by
 * position * frequencies[i], pairs (i, i + head_width / 2); or back. */
struct Rotate {
  DType type = DType::f32;
  int64_t T = 0, n_heads = 0, n_rotated = 0, head_width = 0;
  bool back = false;
  const int32_t* position_ids = nullptr;  // (T)
  const float* frequencies = nullptr;  // (head_width / 2), in host memory, read before the return
  void* x = nullptr;                   // (T, n_heads, head_width)
};

struct RotaryKernels {
  Kernel<Rotate> rotate;
};
extern const RotaryKernels kCpuRotary, kCudaRotary;

/** Rotary positions (Su et al. 2021) as Hugging Face's Llama has them: in each head of width D,
 * elements (i, i + D / 2) are a pair, turned by position * theta^(-2 i / D), a product of fp32. */
struct Rotary {
  int64_t n_heads = 0;     ///< heads of queries
  int64_t n_kv_heads = 0;  ///< heads of keys, and of values, which are not rotated
  double theta = 10000;
};
/** Rotates in place the queries and keys of qkv (T, (n_heads + 2 n_kv_heads) D), D even and at most
 * 512; position_ids (T) int32 below 2^20. */
void rotary_forward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& qkv);
/** The gradient, likewise in place: turned back. */
void rotary_backward(const Rotary& rotary, const at::Tensor& position_ids, at::Tensor& d_qkv);

}  // namespace ferry::ops
