// LayerNorm on CUDA with what stands before or after it. Backward: the groups of a fixed number of
// blocks walk the rows and add up the parameters' gradients as they go; sum_partials adds the
// blocks.

#include "models/ops/cuda/cuda_norm_rows.h"
#include "models/ops/cuda/cuda_reduce.h"
#include "models/ops/norm/norm.h"

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
void launch_forward(const NormForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t row_packs = W / kPack;
        const Groups groups = forward_groups(row_packs, kPack);
        const ForwardShape shape{T, static_cast<int>(row_packs), its.eps,
                                 1.0f / static_cast<float>(W)};
        with_held<kPack>(groups.held, [&]<int kHeld>(IntIs<kHeld>) {
          norm_forward<E, kPack, kHeld, kBefore>
              <<<static_cast<unsigned>(ceil_div(T, groups.groups)), groups.block(), 0,
                 as_stream(on.stream)>>>(shape, Mask(its.dropout), as<E>(its.a), as<E>(its.bias),
                                         as<E>(its.residual), as<E>(its.gamma), as<E>(its.beta),
                                         as<E>(its.z), its.mean, its.rstd, as<E>(its.y));
        });
      },
      its.a, its.bias, its.residual, its.gamma, its.beta, its.z, its.y);
  check_launch("norm_forward");
}

void norm_apply(const NormApply& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        constexpr int kRows = 256 / kWarp;
        apply_norm<E, kPack><<<static_cast<unsigned>(ceil_div(T, kRows)), dim3(kWarp, kRows), 0,
                               as_stream(on.stream)>>>(T, static_cast<int>(W / kPack), as<E>(its.z),
                                                       its.mean, its.rstd, as<E>(its.gamma),
                                                       as<E>(its.beta), as<E>(its.y));
      },
      its.z, its.gamma, its.beta, its.y);
  check_launch("apply_norm");
}

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
void launch_backward(const NormBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  constexpr int kSums = kBefore ? 3 : 2;
  void* const da = its.da == nullptr ? its.dz : its.da;
  const int n_blocks = static_cast<int>(n_norm_backward_blocks(T));
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const int64_t row_packs = W / kPack;
        const Groups groups = backward_groups(row_packs, kPack);
        if (n_blocks > 0) {
          with_held<kPack>(groups.held, [&]<int kHeld>(IntIs<kHeld>) {
            norm_backward<E, kPack, kHeld, kBefore>
                <<<n_blocks, groups.block(), 0, as_stream(on.stream)>>>(
                    T, static_cast<int>(row_packs), 1.0f / static_cast<float>(W), Mask(its.dropout),
                    as<E>(its.dy), as<E>(its.z), its.mean, its.rstd, as<E>(its.gamma),
                    as<E>(its.d_sum), as<E>(its.dz), as<E>(da), as<float>(on.scratch));
          });
          check_launch("norm_backward");
        }
        const SumOutputs<E> outs{as<E>(its.dgamma), as<E>(its.dbeta), as<E>(its.dbias)};
        launch_sum_partials<E>(on, n_blocks, W, kSums, outs);
      },
      its.dy, its.z, its.gamma, its.d_sum, its.dz, da);
}

void dropout_residual_norm_backward(const NormBackward& its, const Launch& on) {
  expect(its.dropout.p == 0 || (its.da != nullptr && its.da != its.dz),
         "da of its own under dropout", its.dropout.p);
  launch_backward<true>(its, on);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::NormKernels ferry::ops::kCudaNorm = {
    .dropout_residual_norm_forward = cuda::launch_forward<true>,
    .norm_dropout_forward = cuda::launch_forward<false>,
    .norm_apply = cuda::norm_apply,
    .dropout_residual_norm_backward = cuda::dropout_residual_norm_backward,
    .norm_dropout_backward = cuda::launch_backward<false>};
