#pragma once
// Column sums in two fp32 stages on CUDA (included from .cu files only): the first adds the rows of
// one chunk, fed by any per-pack source (a plain load, or a backward that stores its result on the
// way); the second adds every 32nd chunk in order, and these sums pairwise. How rows fall into
// chunks depends on the sizes alone.

#include "models/ops/cuda/cuda_common.h"
#include "models/ops/cuda_scratch.h"

namespace ferry::ops::cuda {

constexpr int kSumThreadRows = 8;

/** partial[chunk][column]: blockIdx.x = 32 packs of columns, blockIdx.y = chunk; threads 32 x 8. */
template <int N, typename Source>
__global__ void __launch_bounds__(kWarp* kSumThreadRows)
    sum_chunk(int64_t T, int64_t row_packs, Source source, float* partial) {
  __shared__ float part[kSumThreadRows][N][kWarp];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum[N] = {};
  if (column < row_packs) {
    const int64_t begin = static_cast<int64_t>(blockIdx.y) * kSumChunkRows;
    const int64_t end = min(begin + kSumChunkRows, T);
#pragma unroll 2
    for (int64_t row = begin + threadIdx.y; row < end; row += kSumThreadRows) {
      float x[N];
      source(row, column, row * row_packs + column, x);
#pragma unroll
      for (int i = 0; i < N; i++)
        sum[i] += x[i];
    }
  }
#pragma unroll
  for (int i = 0; i < N; i++)
    part[threadIdx.y][i][threadIdx.x] = sum[i];
  __syncthreads();
  if (column >= row_packs) return;
  for (int i = threadIdx.y; i < N; i += kSumThreadRows) {
    float total = 0;
#pragma unroll
    for (int row = 0; row < kSumThreadRows; row++)
      total += part[row][i][threadIdx.x];
    partial[(blockIdx.y * row_packs + column) * N + i] = total;
  }
}

template <typename T>
struct SumOutputs {
  T* first = nullptr;  ///< null: not wanted
  T* second = nullptr;
  T* third = nullptr;
};

/** output o [column] = sum over chunks of partial (n_chunks, outputs, n_columns), o =
 * blockIdx.y; threads 32 x 32. */
template <typename T>
__global__ void __launch_bounds__(kWarp* kWarp)
    sum_partials(int n_chunks, int64_t n_columns, const float* partial, SumOutputs<T> outputs) {
  __shared__ float part[kWarp][kWarp + 1];
  T* const out = blockIdx.y == 0 ? outputs.first : blockIdx.y == 1 ? outputs.second : outputs.third;
  if (out == nullptr) return;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x;
  float sum = 0;
  if (column < n_columns) {
#pragma unroll 4
    for (int chunk = threadIdx.y; chunk < n_chunks; chunk += kWarp) {
      const int64_t row = static_cast<int64_t>(chunk) * gridDim.y + blockIdx.y;
      sum += partial[row * n_columns + column];
    }
  }
  part[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  const float total = warp_sum(part[threadIdx.x][threadIdx.y]);
  const int64_t mine = static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.y;
  if (threadIdx.x == 0 && mine < n_columns) store_rounded(total, out[mine]);
}

/** The second stage: the scratch holds partial (n_chunks, n_outputs, n_columns). */
template <typename T>
void launch_sum_partials(
    const Launch& on, int n_chunks, int64_t n_columns, int n_outputs, SumOutputs<T> outputs) {
  const dim3 grid(static_cast<unsigned>(ceil_div(n_columns, kWarp)),
                  static_cast<unsigned>(n_outputs));
  sum_partials<T><<<grid, dim3(kWarp, kWarp), 0, as_stream(on.stream)>>>(
      n_chunks, n_columns, as<float>(on.scratch), outputs);
  check_launch("sum_partials");
}

/** out (N) = column sums of what source(row, column pack, pack, values) gives for a (T, N) matrix.
 * Scratch: column_sum_scratch_bytes. */
template <typename T, int kPack, typename Source>
void sum_columns(const Launch& on, int64_t n_rows, int64_t n_columns, Source source, T* out) {
  const int64_t n_chunks = n_sum_chunks(n_rows);
  expect(n_chunks < 65536, "fewer rows", static_cast<double>(n_rows));
  if (n_chunks > 0) {
    const int64_t row_packs = n_columns / kPack;
    const dim3 grid(static_cast<unsigned>(ceil_div(row_packs, kWarp)),
                    static_cast<unsigned>(n_chunks));
    sum_chunk<kPack><<<grid, dim3(kWarp, kSumThreadRows), 0, as_stream(on.stream)>>>(
        n_rows, row_packs, source, as<float>(on.scratch));
    check_launch("sum_chunk");
  }
  launch_sum_partials<T>(on, static_cast<int>(n_chunks), n_columns, 1, {out});
}

}  // namespace ferry::ops::cuda
