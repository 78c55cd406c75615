#pragma once
// RMSNorm of each head of queries and keys in attention's packed rows, before rotary positions
// (Dehghani et al. 2023; Qwen 3, Gemma 3).

#include "models/ops/operation.h"

namespace ferry::ops {

/** Rows of attention: each has heads of queries, then of keys, then of values. */
struct HeadRows {
  DType type = DType::f32;
  int64_t T = 0, n_heads = 0, n_kv_heads = 0, head_width = 0;

  int64_t n_normed() const { return n_heads + n_kv_heads; }
  int64_t n_all() const { return n_heads + 2 * n_kv_heads; }
};

/** y = x * rstd * (weight + weight_offset) in each head of queries and keys, with rstd = 1 /
 * sqrt(mean(x^2) + eps) of the head; values as they are. */
struct HeadNormForward {
  HeadRows rows;
  float eps = 0, weight_offset = 0;
  const void* x = nullptr;         // (T, n_all, head_width)
  const void* q_weight = nullptr;  // (head_width)
  const void* k_weight = nullptr;  // (head_width)
  float* rstd = nullptr;           // (T, n_normed)
  void* y = nullptr;               // (T, n_all, head_width)
};

/** d, y's gradient, becomes that of x; and the weights' gradients. Scratch:
 * head_norm_backward_scratch_bytes. */
struct HeadNormBackward {
  HeadRows rows;
  float weight_offset = 0;
  const void* x = nullptr;         // (T, n_all, head_width)
  const float* rstd = nullptr;     // (T, n_normed)
  const void* q_weight = nullptr;  // (head_width)
  const void* k_weight = nullptr;  // (head_width)
  void* d = nullptr;               // (T, n_all, head_width)
  void* dq_weight = nullptr;       // (head_width)
  void* dk_weight = nullptr;       // (head_width)
};

struct HeadNormKernels {
  Kernel<HeadNormForward> head_norm_forward;
  Kernel<HeadNormBackward> head_norm_backward;
};
extern const HeadNormKernels kCpuHeadNorm, kCudaHeadNorm;

struct HeadNorm {
  int64_t n_heads = 0, n_kv_heads = 0;
  float eps = 0, weight_offset = 0;
};
/** The same on tensors: x, y and d (T, (n_heads + 2 n_kv_heads) head_width), rstd fp32. */
void head_norm_forward(const HeadNorm& norm,
                       const at::Tensor& x,
                       const at::Tensor& q_weight,
                       const at::Tensor& k_weight,
                       at::Tensor& rstd,
                       at::Tensor& y);
void head_norm_backward(const HeadNorm& norm,
                        const at::Tensor& x,
                        const at::Tensor& q_weight,
                        const at::Tensor& k_weight,
                        const at::Tensor& rstd,
                        at::Tensor& d,
                        at::Tensor& dq_weight,
                        at::Tensor& dk_weight,
                        Scratch& scratch);

}  // namespace ferry::ops
