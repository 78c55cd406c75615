#pragma once
// The kernels on rows of a matrix: their sum, some of them by number, and the gradient of these.

#include "models/ops/kernel.h"

namespace ferry::ops {

/** out[n] = sum over t of x[t][n], in two fp32 stages. Scratch: column_sum_scratch_bytes. */
struct ColumnSum {
  DType type = DType::f32;
  int64_t T = 0, N = 0;
  const void* x = nullptr;  // (T, N)
  void* out = nullptr;      // (N)
};

/** out[i] = x[rows[i]]. */
struct GatherRows {
  DType type = DType::f32;
  int64_t n = 0, W = 0;
  const void* x = nullptr;        // (T, W)
  const int32_t* rows = nullptr;  // (n)
  void* out = nullptr;            // (n, W)
};

/** dx = 0 but dx[rows[i]] = d_out[i]; no row comes twice. */
struct ScatterRows {
  DType type = DType::f32;
  int64_t T = 0, n = 0, W = 0;
  const void* d_out = nullptr;    // (n, W)
  const int32_t* rows = nullptr;  // (n)
  void* dx = nullptr;             // (T, W)
};

struct RowsKernels {
  Kernel<ColumnSum> column_sum;
  Kernel<GatherRows> gather_rows;
  Kernel<ScatterRows> scatter_rows;
};
namespace cpu {
extern const RowsKernels kRows;
}
namespace cuda {
extern const RowsKernels kRows;
}

}  // namespace ferry::ops
