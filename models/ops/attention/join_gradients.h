#pragma once
// The kernel that a GPU's attention needs besides LibTorch's.

#include "models/ops/operation.h"

namespace ferry::ops {

/** The gradients of attention's three inputs side by side, dqkv = [dq dk dv], and dbias, its column
 * sum: what the backward of the fused q, k, v matrix reads. q_width is a multiple of kv_width.
 * Scratch: column_sum_scratch_bytes of dqkv, none without dbias. */
struct JoinQkvGradients {
  DType type = DType::f32;
  int64_t T = 0, q_width = 0, kv_width = 0;
  const void* dq = nullptr;  // (T, q_width)
  const void* dk = nullptr;  // (T, kv_width)
  const void* dv = nullptr;  // (T, kv_width)
  void* dqkv = nullptr;      // (T, q_width + 2 kv_width)
  void* dbias = nullptr;     // (q_width + 2 kv_width) or null
};

struct AttentionKernels {
  Kernel<JoinQkvGradients> join_qkv_gradients;
};
extern const AttentionKernels kCudaAttention;

}  // namespace ferry::ops
