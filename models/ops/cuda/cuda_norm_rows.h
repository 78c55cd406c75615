#pragma once
// The norms' kernels (cuda_norm_forward.cu, cuda_norm_backward.cu, cuda_rms_norm.cu) give rows to
// threads in one way: a group of whole warps owns a row and holds it in registers, a block has
// several groups side by side.

#include <bit>

#include "models/ops/cuda/cuda_common.h"

namespace ferry::ops::cuda {

constexpr int kMaxThreads = 512;  // the most threads of a block
/** The most packs of a row one thread holds. */
constexpr int kMaxHeld = 4;

/** The row groups of a block: threads (group_threads, groups). */
struct Groups {
  int held = 1;           ///< packs a thread holds: 1 or kMaxHeld
  int group_threads = 0;  ///< a power of two of whole warps
  int groups = 0;         ///< rows of a block at a time

  dim3 block() const { return dim3(group_threads, groups); }
};

inline Groups groups_for(int64_t row_packs, int block_threads, int held) {
  Groups result;
  result.held = held;
  expect(row_packs <= static_cast<int64_t>(block_threads) * held, "a narrower row",
         static_cast<double>(row_packs));
  const int64_t warps = ceil_div(row_packs, kWarp * held);
  result.group_threads = kWarp * static_cast<int>(std::bit_ceil(static_cast<uint64_t>(warps)));
  result.groups = block_threads / result.group_threads;
  return result;
}

constexpr int kForwardThreads = 256;  // threads of a block, unless one row needs more

/** Few accesses a row: one a thread, else many in flight in each. Odd rows need not be fast. */
inline Groups forward_groups(int64_t row_packs, int pack) {
  const int held = row_packs <= 2 * kWarp && pack > 1 ? 1 : kMaxHeld;
  return groups_for(row_packs, row_packs > kForwardThreads * held ? kMaxThreads : kForwardThreads,
                    held);
}

/** One access a thread where that is enough: the sums take most registers. */
inline Groups backward_groups(int64_t row_packs, int pack) {
  return groups_for(row_packs, kMaxThreads, row_packs <= kMaxThreads && pack > 1 ? 1 : kMaxHeld);
}

/** Calls work(IntIs<packs a thread holds>). */
template <int kPack, typename Work>
void with_held(int held, Work&& work) {
  if constexpr (kPack > 1) {
    if (held == 1) return work(IntIs<1>{});
  }
  work(IntIs<kMaxHeld>{});
}

constexpr int kMaxWarps = kMaxThreads / kWarp;

/** Sums over the group of two values, in every thread of it. Called by all threads of the block;
 * `buffer` alternates between calls, so one barrier is enough. */
__device__ inline float2 group_sum(float2 value, float2* buffer) {
  value = {warp_sum(value.x), warp_sum(value.y)};
  if (blockDim.x == kWarp) return value;
  const int n_warps = static_cast<int>(blockDim.x / kWarp);
  float2* mine = buffer + threadIdx.y * n_warps;
  if (threadIdx.x % kWarp == 0) mine[threadIdx.x / kWarp] = value;
  __syncthreads();
  float2 total = {0, 0};
  for (int warp = 0; warp < n_warps; warp++) {
    total.x += mine[warp].x;
    total.y += mine[warp].y;
  }
  return total;
}

/** The column sums of a block's groups into one row of `partial`: group 0 adds them in order.
 * Called by all threads of the block. */
template <int N, int kHeld>
__device__ inline void add_groups(const float (&sums)[kHeld][N],
                                  float (&shared)[N][kMaxThreads],
                                  int row_packs,
                                  float* partial) {
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < N; i++)
      shared[i][thread] = sums[held][i];
    __syncthreads();
    const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
    if (threadIdx.y != 0 || column >= row_packs) continue;
#pragma unroll
    for (int i = 0; i < N; i++) {
      float total = 0;
      for (int group = 0; group < blockDim.y; group++)
        total += shared[i][group * blockDim.x + threadIdx.x];
      partial[static_cast<int64_t>(column) * N + i] = total;
    }
  }
}

}  // namespace ferry::ops::cuda
