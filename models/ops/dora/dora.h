#pragma once
// Kernels of DoRA: the norms of a matrix and its adapter, and the scaling of columns.

#include "models/ops/operation.h"

namespace ferry::ops {

/** For each row i of w, with p = (W + s/2 B A) A^T: the square of the norm of W + s B A is
 * |w_i|^2 + factor * sum over k of p[i][k] b[i][k], and factor = 2 s. A row of norm 0 has the scale
 * 1. */
struct DoraNorms {
  Extent extent;  ///< of w
  int64_t rank = 0;
  float factor = 1;
  const void* w = nullptr;          // (T, W)
  const void* p = nullptr;          // (T, rank)
  const void* b = nullptr;          // (T, rank)
  const void* magnitude = nullptr;  // (T)
  float* scale = nullptr;           // (T): magnitude / norm
  float* inverse = nullptr;         // (T): 1 / norm; of norm 0: 0
};

/** y = base + (scale v - plain) + bias_factor * bias. base, plain and bias or null. */
struct DoraForward {
  Extent extent;
  float bias_factor = 1;
  const void* v = nullptr;       // (T, W)
  const float* scale = nullptr;  // (W)
  const void* base = nullptr;    // (T, W)
  const void* plain = nullptr;   // (T, W)
  const void* bias = nullptr;    // (W)
  void* y = nullptr;             // (T, W); may be base
};

/** dv = scale dy, d_plain = -dy, d_scale[i] = sum over t of dy[t][i] v[t][i]. d_plain or null; dv
 * may be dy where it is null. Scratch: column_sum_scratch_bytes. */
struct DoraBackward {
  Extent extent;
  const void* dy = nullptr;      // (T, W)
  const void* v = nullptr;       // (T, W)
  const float* scale = nullptr;  // (W)
  void* dv = nullptr;            // (T, W)
  void* d_plain = nullptr;       // (T, W)
  float* d_scale = nullptr;      // (W)
};

/** out[i] = a[i] * b[i], rounded. */
struct DoraProduct {
  DType type = DType::f32;
  int64_t n = 0;
  const float* a = nullptr;
  const float* b = nullptr;
  void* out = nullptr;
};

struct DoraKernels {
  Kernel<DoraNorms> norms;
  Kernel<DoraForward> forward;
  Kernel<DoraBackward> backward;
  Kernel<DoraProduct> product;
};
extern const DoraKernels kCpuDora, kCudaDora;

}  // namespace ferry::ops
