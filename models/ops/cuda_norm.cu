// LayerNorm on CUDA with what stands before and after it: bias, dropout and residual of a layer's
// two sublayers (dropout_residual_norm), and the embeddings' LayerNorm then dropout
// (norm_dropout). A group of whole warps owns a row and keeps it in registers between the passes;
// the backward's groups walk many rows and add up the parameters' gradients as they go.

#include <bit>

#include "models/ops/cuda_common.h"
#include "models/ops/cuda_reduce.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kForwardThreads = 256;  // of a block, unless one row needs more
constexpr int kMaxThreads = 512;
/** The most packs of a row one thread holds. */
constexpr int kMaxHeld = 4;

/** How a block is cut into row groups: threads (group_threads, groups). */
struct Groups {
  int held = 1;           ///< packs a thread holds: 1 or kMaxHeld
  int group_threads = 0;  ///< a power of two of whole warps
  int groups = 0;         ///< rows of a block at a time

  dim3 block() const { return dim3(group_threads, groups); }
};

Groups groups_for(int64_t row_packs, int block_threads, int held) {
  Groups result;
  result.held = held;
  expect(row_packs <= static_cast<int64_t>(block_threads) * held, "a narrower row",
         static_cast<double>(row_packs));
  const int64_t warps = ceil_div(row_packs, kWarp * held);
  result.group_threads = kWarp * static_cast<int>(std::bit_ceil(static_cast<uint64_t>(warps)));
  result.groups = block_threads / result.group_threads;
  return result;
}

/** Few accesses a row: one a thread, else many in flight in each. Odd rows need not be fast. */
Groups forward_groups(int64_t row_packs, int pack) {
  const int held = row_packs <= 2 * kWarp && pack > 1 ? 1 : kMaxHeld;
  return groups_for(row_packs, row_packs > kForwardThreads * held ? kMaxThreads : kForwardThreads,
                    held);
}

/** One access a thread where that is enough: the sums take most registers. */
Groups backward_groups(int64_t row_packs, int pack) {
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

constexpr int kMaxWarps = kMaxThreads / kWarp;

struct ForwardShape {
  int64_t n_rows;
  int row_packs;
  float eps;
  float inv_width;
};

/** kBefore: z = dropout(a + bias) + residual is made, stored and normalised; else z is `a` and y is
 * dropped. */
template <typename T, int N, int kHeld, bool kBefore>
__global__ void __launch_bounds__(kMaxThreads) norm_forward(ForwardShape shape,
                                                            Mask mask,
                                                            const T* a,
                                                            const T* __restrict__ bias,
                                                            const T* residual,
                                                            const T* __restrict__ gamma,
                                                            const T* __restrict__ beta,
                                                            T* z,
                                                            float* __restrict__ mean_out,
                                                            float* __restrict__ rstd_out,
                                                            T* y) {
  __shared__ float2 buffers[2][kMaxWarps];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool has_row = row < shape.n_rows;
  float x[kHeld][N];
  float sum = 0;
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
    const bool here = has_row && column < shape.row_packs;
    const int64_t pack = row * shape.row_packs + column;
#pragma unroll
    for (int i = 0; i < N; i++)
      x[held][i] = 0;
    if (!here) continue;
    load(a, pack, x[held]);
    if constexpr (kBefore) {
      float other[N];
      if (bias != nullptr) {
        load(bias, column, other);
#pragma unroll
        for (int i = 0; i < N; i++)
          x[held][i] += other[i];
      }
      apply_dropout(mask, pack, x[held]);
      if (residual != nullptr) {
        load(residual, pack, other);
#pragma unroll
        for (int i = 0; i < N; i++)
          x[held][i] += other[i];
      }
#pragma unroll
      for (int i = 0; i < N; i++)
        x[held][i] = rounded<T>(x[held][i]);
      store(x[held], z, pack);
    }
#pragma unroll
    for (int i = 0; i < N; i++)
      sum += x[held][i];
  }
  const float mean = group_sum({sum, 0}, buffers[0]).x * shape.inv_width;
  float squares = 0;
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    const bool here = has_row && threadIdx.x + held * blockDim.x < shape.row_packs;
    if (!here) continue;
#pragma unroll
    for (int i = 0; i < N; i++)
      squares = fmaf(x[held][i] - mean, x[held][i] - mean, squares);
  }
  const float variance = group_sum({squares, 0}, buffers[1]).x * shape.inv_width;
  const float rstd = 1.0f / sqrtf(variance + shape.eps);
  if (!has_row) return;
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
    if (column >= shape.row_packs) continue;
    const int64_t pack = row * shape.row_packs + column;
    float scale[N], shift[N];
    load(gamma, column, scale);
    load(beta, column, shift);
#pragma unroll
    for (int i = 0; i < N; i++) {
      x[held][i] = fmaf((x[held][i] - mean) * rstd, scale[i], shift[i]);
    }
    if constexpr (!kBefore) apply_dropout(mask, pack, x[held]);
    store(x[held], y, pack);
  }
  if (threadIdx.x == 0) {
    mean_out[row] = mean;
    rstd_out[row] = rstd;
  }
}

/** kBefore as in norm_forward. partial (blocks, kBefore ? 3 : 2, W): the block's sums for dgamma,
 * dbeta and dbias. */
template <typename T, int N, int kHeld, bool kBefore>
__global__ void __launch_bounds__(kMaxThreads, kHeld == 1 ? 2 : 1)
    norm_backward(int64_t n_rows,
                  int row_packs,
                  float inv_width,
                  Mask mask,
                  const T* dy,
                  const T* z,
                  const float* __restrict__ means,
                  const float* __restrict__ rstds,
                  const T* __restrict__ gamma,
                  T* dz,
                  T* da,
                  float* partial) {
  constexpr int kSums = kBefore ? 3 : 2;
  __shared__ float2 buffers[2][kMaxWarps];
  __shared__ float shared_sum[N][kMaxThreads];
  float sums[kSums][kHeld][N] = {};
  int turn = 0;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < n_rows;
       first += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const int64_t row = first + threadIdx.y;
    const bool has_row = row < n_rows;
    const float mean = has_row ? means[row] : 0;
    const float rstd = has_row ? rstds[row] : 0;
    float x[kHeld][N], d[kHeld][N];  // normalised z; gradient of it
    float2 dots = {0, 0};
#pragma unroll
    for (int held = 0; held < kHeld; held++) {
      const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
      const int64_t pack = row * row_packs + column;
      if (!has_row || column >= row_packs) continue;
      float scale[N];
      load(z, pack, x[held]);
      load(dy, pack, d[held]);
      load(gamma, column, scale);
      if constexpr (!kBefore) apply_dropout(mask, pack, d[held]);
#pragma unroll
      for (int i = 0; i < N; i++) {
        x[held][i] = (x[held][i] - mean) * rstd;
        sums[0][held][i] = fmaf(d[held][i], x[held][i], sums[0][held][i]);
        sums[1][held][i] += d[held][i];
        d[held][i] *= scale[i];
        dots.x += d[held][i];
        dots.y = fmaf(d[held][i], x[held][i], dots.y);
      }
    }
    dots = group_sum(dots, buffers[turn]);
    turn ^= 1;
    dots = {dots.x * inv_width, dots.y * inv_width};
#pragma unroll
    for (int held = 0; held < kHeld; held++) {
      const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
      const int64_t pack = row * row_packs + column;
      if (!has_row || column >= row_packs) continue;
#pragma unroll
      for (int i = 0; i < N; i++) {
        d[held][i] = rstd * (d[held][i] - dots.x - x[held][i] * dots.y);
      }
      store(d[held], dz, pack);
      if constexpr (kBefore) {
        apply_dropout(mask, pack, d[held]);
        if (da != dz) store(d[held], da, pack);
#pragma unroll
        for (int i = 0; i < N; i++)
          sums[2][held][i] += d[held][i];
      }
    }
  }
  // The block's groups into one: group 0 adds them in order.
  const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
  for (int which = 0; which < kSums; which++) {
#pragma unroll
    for (int held = 0; held < kHeld; held++) {
      __syncthreads();
#pragma unroll
      for (int i = 0; i < N; i++)
        shared_sum[i][thread] = sums[which][held][i];
      __syncthreads();
      const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
      if (threadIdx.y != 0 || column >= row_packs) continue;
#pragma unroll
      for (int i = 0; i < N; i++) {
        float total = 0;
        for (int group = 0; group < blockDim.y; group++) {
          total += shared_sum[i][group * blockDim.x + threadIdx.x];
        }
        const int64_t at = static_cast<int64_t>(blockIdx.x) * kSums + which;
        partial[(at * row_packs + column) * N + i] = total;
      }
    }
  }
}

template <bool kBefore>
void launch_forward(void* stream,
                    DType type,
                    int64_t T,
                    int64_t W,
                    float eps,
                    Dropout dropout,
                    const void* a,
                    const void* bias,
                    const void* residual,
                    const void* gamma,
                    const void* beta,
                    void* z,
                    float* mean,
                    float* rstd,
                    void* y) {
  if (T == 0) return;
  with_packs(
      type, W,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        const Groups groups = forward_groups(W / kPack, kPack);
        const ForwardShape shape{T, static_cast<int>(W / kPack), eps, 1.0f / static_cast<float>(W)};
        with_held<kPack>(groups.held, [&](auto held) {
          norm_forward<E, kPack, decltype(held)::value, kBefore>
              <<<static_cast<unsigned>(ceil_div(T, groups.groups)), groups.block(), 0,
                 as_stream(stream)>>>(shape, Mask(dropout), static_cast<const E*>(a),
                                      static_cast<const E*>(bias), static_cast<const E*>(residual),
                                      static_cast<const E*>(gamma), static_cast<const E*>(beta),
                                      static_cast<E*>(z), mean, rstd, static_cast<E*>(y));
        });
      },
      a, bias, residual, gamma, beta, z, y);
  check_launch("norm_forward");
}

template <bool kBefore>
void launch_backward(void* stream,
                     DType type,
                     int64_t T,
                     int64_t W,
                     Dropout dropout,
                     const void* dy,
                     const void* z,
                     const float* mean,
                     const float* rstd,
                     const void* gamma,
                     void* dz,
                     void* da,
                     void* dgamma,
                     void* dbeta,
                     void* dbias,
                     void* scratch) {
  constexpr int kSums = kBefore ? 3 : 2;
  auto* partial = static_cast<float*>(scratch);
  const int n_blocks = static_cast<int>(n_norm_backward_blocks(T));
  with_packs(
      type, W,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        const Groups groups = backward_groups(W / kPack, kPack);
        if (n_blocks > 0) {
          with_held<kPack>(groups.held, [&](auto held) {
            norm_backward<E, kPack, decltype(held)::value, kBefore>
                <<<n_blocks, groups.block(), 0, as_stream(stream)>>>(
                    T, static_cast<int>(W / kPack), 1.0f / static_cast<float>(W), Mask(dropout),
                    static_cast<const E*>(dy), static_cast<const E*>(z), mean, rstd,
                    static_cast<const E*>(gamma), static_cast<E*>(dz), static_cast<E*>(da),
                    partial);
          });
          check_launch("norm_backward");
        }
        const SumOutputs<E> outs{static_cast<E*>(dgamma), static_cast<E*>(dbeta),
                                 static_cast<E*>(dbias)};
        launch_sum_partials<E>(stream, n_blocks, W, kSums, partial, outs);
      },
      dy, z, gamma, dz, da);
}

}  // namespace

void dropout_residual_norm_forward(void* stream,
                                   DType type,
                                   int64_t T,
                                   int64_t W,
                                   float eps,
                                   Dropout dropout,
                                   const void* a,
                                   const void* bias,
                                   const void* residual,
                                   const void* gamma,
                                   const void* beta,
                                   void* z,
                                   float* mean,
                                   float* rstd,
                                   void* y) {
  launch_forward<true>(stream, type, T, W, eps, dropout, a, bias, residual, gamma, beta, z, mean,
                       rstd, y);
}

void dropout_residual_norm_backward(void* stream,
                                    DType type,
                                    int64_t T,
                                    int64_t W,
                                    Dropout dropout,
                                    const void* dy,
                                    const void* z,
                                    const float* mean,
                                    const float* rstd,
                                    const void* gamma,
                                    void* dz,
                                    void* da,
                                    void* dgamma,
                                    void* dbeta,
                                    void* dbias,
                                    void* scratch) {
  expect(dropout.p == 0 || (da != nullptr && da != dz), "da of its own under dropout", dropout.p);
  launch_backward<true>(stream, type, T, W, dropout, dy, z, mean, rstd, gamma, dz,
                        da == nullptr ? dz : da, dgamma, dbeta, dbias, scratch);
}

void norm_dropout_forward(void* stream,
                          DType type,
                          int64_t T,
                          int64_t W,
                          float eps,
                          Dropout dropout,
                          const void* z,
                          const void* gamma,
                          const void* beta,
                          float* mean,
                          float* rstd,
                          void* y) {
  launch_forward<false>(stream, type, T, W, eps, dropout, z, nullptr, nullptr, gamma, beta, nullptr,
                        mean, rstd, y);
}

void norm_dropout_backward(void* stream,
                           DType type,
                           int64_t T,
                           int64_t W,
                           Dropout dropout,
                           const void* dy,
                           const void* z,
                           const float* mean,
                           const float* rstd,
                           const void* gamma,
                           void* dz,
                           void* dgamma,
                           void* dbeta,
                           void* scratch) {
  launch_backward<false>(stream, type, T, W, dropout, dy, z, mean, rstd, gamma, dz, dz, dgamma,
                         dbeta, nullptr, scratch);
}

}  // namespace ferry::ops::cuda
