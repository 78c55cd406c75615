#pragma once
// Rows of a matrix: their sum, some of them by number, and the gradient of these.

#include "models/ops/operation.h"

namespace ferry::ops {

/** out[i] = sum over t of x[t][i], in two fp32 stages. Scratch: column_sum_scratch_bytes. */
struct ColumnSum {
  Extent extent;
  const void* x = nullptr;  // (T, W)
  void* out = nullptr;      // (W)
};

/** out[i] = x[rows[i]]. */
struct GatherRows {
  Extent extent;                  // (n, W)
  const void* x = nullptr;        // (T, W)
  const int32_t* rows = nullptr;  // (n)
  void* out = nullptr;            // (n, W)
};

/** dx = 0 but dx[rows[i]] = d_out[i]; no row comes twice. */
struct ScatterRows {
  Extent extent;
  int64_t n = 0;
  const void* d_out = nullptr;    // (n, W)
  const int32_t* rows = nullptr;  // (n)
  void* dx = nullptr;             // (T, W)
};

/** x[rows[i]] = from[i], and no other row changes; no row comes twice. */
struct PutRows {
  Extent extent;                  // (n, W)
  const void* from = nullptr;     // (n, W)
  const int32_t* rows = nullptr;  // (n)
  void* x = nullptr;              // (T, W)
};

struct RowsKernels {
  Kernel<ColumnSum> column_sum;
  Kernel<GatherRows> gather_rows;
  Kernel<ScatterRows> scatter_rows;
  Kernel<PutRows> put_rows;
};
extern const RowsKernels kCpuRows, kCudaRows;

/** The same on tensors; `rows` may have more than n. */
void column_sum(const at::Tensor& x, const at::Tensor& out, Scratch& scratch);
void gather_rows(const at::Tensor& x, const at::Tensor& rows, at::Tensor& out);
void scatter_rows(const at::Tensor& d_out, const at::Tensor& rows, at::Tensor& dx);
void put_rows(const at::Tensor& from, const at::Tensor& rows, at::Tensor& x);

}  // namespace ferry::ops
