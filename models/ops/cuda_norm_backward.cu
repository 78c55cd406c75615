// Backward of the norms of cuda_norm_forward.cu: the groups of a fixed number of blocks walk the
// rows and add up the parameters' gradients as they go; sum_partials adds the blocks.

#include "models/ops/cuda_norm_rows.h"
#include "models/ops/cuda_reduce.h"

namespace ferry::ops::cuda {
namespace {

/** kBefore: the gradient of norm(dropout(a + bias) + residual), else of dropout(norm(z)). partial
 * (blocks, kBefore ? 3 : 2, W): the block's sums for dgamma, dbeta and dbias. */
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
                  const T* d_sum,
                  T* dz,
                  T* da,
                  float* partial) {
  constexpr int kSums = kBefore ? 3 : 2;
  __shared__ float2 buffers[2][kMaxWarps];
  __shared__ float shared_sum[N][kMaxThreads];
  mask.load_key();
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
      if (d_sum != nullptr) {
        float other[N];
        load(d_sum, pack, other);
#pragma unroll
        for (int i = 0; i < N; i++)
          d[held][i] += other[i];
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
#pragma unroll
  for (int which = 0; which < kSums; which++)
    add_groups(sums[which], shared_sum, row_packs,
               partial + (static_cast<int64_t>(blockIdx.x) * kSums + which) * row_packs * N);
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
                     const void* d_sum,
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
                    static_cast<const E*>(gamma), static_cast<const E*>(d_sum), static_cast<E*>(dz),
                    static_cast<E*>(da), partial);
          });
          check_launch("norm_backward");
        }
        const SumOutputs<E> outs{static_cast<E*>(dgamma), static_cast<E*>(dbeta),
                                 static_cast<E*>(dbias)};
        launch_sum_partials<E>(stream, n_blocks, W, kSums, partial, outs);
      },
      dy, z, gamma, d_sum, dz, da);
}

}  // namespace

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
                                    const void* d_sum,
                                    void* dz,
                                    void* da,
                                    void* dgamma,
                                    void* dbeta,
                                    void* dbias,
                                    void* scratch) {
  expect(dropout.p == 0 || (da != nullptr && da != dz), "da of its own under dropout", dropout.p);
  launch_backward<true>(stream, type, T, W, dropout, dy, z, mean, rstd, gamma, d_sum, dz,
                        da == nullptr ? dz : da, dgamma, dbeta, dbias, scratch);
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
                           const void* d_sum,
                           void* dz,
                           void* dgamma,
                           void* dbeta,
                           void* scratch) {
  launch_backward<false>(stream, type, T, W, dropout, dy, z, mean, rstd, gamma, d_sum, dz, dz,
                         dgamma, dbeta, nullptr, scratch);
}

}  // namespace ferry::ops::cuda
