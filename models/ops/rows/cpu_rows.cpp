// Sums of rows, and rows by number, on the CPU.

#include <cstring>

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/rows/rows_kernels.h"

namespace ferry::ops::cpu {
namespace {

void column_sum(const ColumnSum& its, const Launch& on) {
  const RowKernels& kernels = row_kernels();
  const int64_t N = its.N;
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(its.T, N, [&](int64_t block, int64_t begin, int64_t end) {
    Rows in(its.type, N, its.x);
    float* sum = partial + block * N;
    std::fill_n(sum, N, 0.0f);
    for (int64_t t = begin; t < end; t++)
      kernels.add(sum, in.read(t), N);
  });
  void* const out[] = {its.out};
  add_partials(its.type, n_blocks_of(its.T), 1, N, partial, out);
}

void gather_rows(const GatherRows& its, const Launch&) {
  const int64_t row_bytes = its.W * static_cast<int64_t>(size_of(its.type));
  for_row_blocks(its.n, its.W, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      memcpy(static_cast<std::byte*>(its.out) + i * row_bytes,
             static_cast<const std::byte*>(its.x) + its.rows[i] * row_bytes,
             static_cast<size_t>(row_bytes));
    }
  });
}

void scatter_rows(const ScatterRows& its, const Launch&) {
  const int64_t row_bytes = its.W * static_cast<int64_t>(size_of(its.type));
  set_zero(its.type, its.T, its.W, its.dx);
  for (int64_t i = 0; i < its.n; i++) {
    memcpy(static_cast<std::byte*>(its.dx) + its.rows[i] * row_bytes,
           static_cast<const std::byte*>(its.d_out) + i * row_bytes,
           static_cast<size_t>(row_bytes));
  }
}

}  // namespace

const RowsKernels kRows = {
    .column_sum = column_sum, .gather_rows = gather_rows, .scatter_rows = scatter_rows};

}  // namespace ferry::ops::cpu
