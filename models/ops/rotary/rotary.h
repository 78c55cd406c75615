#pragma once
// Rotary positions on tensors: the queries and keys of attention's packed rows.

#include <ATen/core/Tensor.h>

namespace ferry::ops {

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
