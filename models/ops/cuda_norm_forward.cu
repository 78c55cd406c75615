// LayerNorm on CUDA with what stands before or after it: bias, dropout and residual of a layer's
// two sublayers (dropout_residual_norm), the embeddings' LayerNorm then dropout (norm_dropout), and
// the norm alone from kept moments (norm_apply).

#include "models/ops/cuda_norm_rows.h"

namespace ferry::ops::cuda {
namespace {

__device__ inline float normalised(float x, float mean, float rstd, float scale, float shift) {
  return fmaf((x - mean) * rstd, scale, shift);
}

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
  mask.load_key();
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
      x[held][i] = normalised(x[held][i], mean, rstd, scale[i], shift[i]);
    }
    if constexpr (!kBefore) apply_dropout(mask, pack, x[held]);
    store(x[held], y, pack);
  }
  if (threadIdx.x == 0) {
    mean_out[row] = mean;
    rstd_out[row] = rstd;
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(256) apply_norm(int64_t n_rows,
                                                  int row_packs,
                                                  const T* z,
                                                  const float* __restrict__ means,
                                                  const float* __restrict__ rstds,
                                                  const T* __restrict__ gamma,
                                                  const T* __restrict__ beta,
                                                  T* y) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= n_rows) return;
  const float mean = means[row], rstd = rstds[row];
  for (int column = static_cast<int>(threadIdx.x); column < row_packs; column += kWarp) {
    float x[N], scale[N], shift[N];
    load(z, row * row_packs + column, x);
    load(gamma, column, scale);
    load(beta, column, shift);
#pragma unroll
    for (int i = 0; i < N; i++)
      x[i] = normalised(x[i], mean, rstd, scale[i], shift[i]);
    store(x, y, row * row_packs + column);
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

void norm_apply(void* stream,
                DType type,
                int64_t T,
                int64_t W,
                const void* z,
                const float* mean,
                const float* rstd,
                const void* gamma,
                const void* beta,
                void* y) {
  if (T == 0) return;
  with_packs(
      type, W,
      [&](auto element, auto pack) {
        using E = typename decltype(element)::type;
        constexpr int kPack = decltype(pack)::value;
        constexpr int kRows = 256 / kWarp;
        apply_norm<E, kPack><<<static_cast<unsigned>(ceil_div(T, kRows)), dim3(kWarp, kRows), 0,
                               as_stream(stream)>>>(
            T, static_cast<int>(W / kPack), static_cast<const E*>(z), mean, rstd,
            static_cast<const E*>(gamma), static_cast<const E*>(beta), static_cast<E*>(y));
      },
      z, gamma, beta, y);
  check_launch("apply_norm");
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

}  // namespace ferry::ops::cuda
