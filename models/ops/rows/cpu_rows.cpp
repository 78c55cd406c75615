// Sums of rows, and rows by number, on the CPU.

#include <cstring>

#include "models/ops/cpu/row_blocks.h"
#include "models/ops/cpu/row_kernels.h"
#include "models/ops/rows/rows.h"

namespace ferry::ops::cpu {
namespace {

void column_sum(const ColumnSum& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const RowKernels& kernels = row_kernels();
  auto* partial = static_cast<float*>(on.scratch);
  for_row_blocks(T, W, [&](int64_t block, int64_t begin, int64_t end) {
    Rows in(type, W, its.x);
    float* sum = partial + block * W;
    std::fill_n(sum, W, 0.0f);
    for (int64_t t = begin; t < end; t++)
      kernels.add(sum, in.read(t), W);
  });
  void* const out[] = {its.out};
  add_partials(type, n_blocks_of(T), 1, W, partial, out);
}

void gather_rows(const GatherRows& its, const Launch&) {
  const auto [type, n, W] = its.extent;
  const int64_t row_bytes = W * static_cast<int64_t>(size_of(type));
  for_row_blocks(n, W, [&](int64_t, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) {
      memcpy(static_cast<std::byte*>(its.out) + i * row_bytes,
             static_cast<const std::byte*>(its.x) + its.rows[i] * row_bytes,
             static_cast<size_t>(row_bytes));
    }
  });
}

void put_rows(const PutRows& its, const Launch&) {
  const auto [type, n, W] = its.extent;
  const int64_t row_bytes = W * static_cast<int64_t>(size_of(type));
  for (int64_t i = 0; i < n; i++) {
    memcpy(static_cast<std::byte*>(its.x) + its.rows[i] * row_bytes,
           static_cast<const std::byte*>(its.from) + i * row_bytes, static_cast<size_t>(row_bytes));
  }
}

void scatter_rows(const ScatterRows& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  set_zero(type, T, W, its.dx);
  put_rows({{type, its.n, W}, its.d_out, its.rows, its.dx}, on);
}

}  // namespace
}  // namespace ferry::ops::cpu

const ferry::ops::RowsKernels ferry::ops::kCpuRows = {.column_sum = cpu::column_sum,
                                                      .gather_rows = cpu::gather_rows,
                                                      .scatter_rows = cpu::scatter_rows,
                                                      .put_rows = cpu::put_rows};
