// RMSNorm on CUDA with the residual sum before it, its backward with the gradient that passes the
// norm by, and the norm again from the kept scale. Called by decoders' layers and heads.

#include "models/ops/cuda/cuda_norm_rows.h"
#include "models/ops/cuda/cuda_reduce.h"
#include "models/ops/cuda/cuda_weight.h"
#include "models/ops/rms_norm/rms_norm.h"

namespace ferry::ops::cuda {
namespace {

struct RowShape {
  int64_t n_rows;
  int row_packs;
  float eps;
  float inv_width;
  float weight_offset;
};

/** z (if not null) = a + residual, rounded; y = z * rstd * weight. */
template <typename T, int N, int kHeld>
__global__ void __launch_bounds__(kMaxThreads) rms_forward(RowShape shape,
                                                           const T* a,
                                                           const T* residual,
                                                           const T* __restrict__ weight,
                                                           T* z,
                                                           float* __restrict__ rstd_out,
                                                           T* y) {
  __shared__ float2 buffer[kMaxWarps];
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  const bool has_row = row < shape.n_rows;
  float x[kHeld][N];
  float squares = 0;
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
    const int64_t pack = row * shape.row_packs + column;
    if (!has_row || column >= shape.row_packs) continue;
    load(a, pack, x[held]);
    if (residual != nullptr) {
      float other[N];
      load(residual, pack, other);
#pragma unroll
      for (int i = 0; i < N; i++)
        x[held][i] = rounded<T>(x[held][i] + other[i]);
    }
    if (z != nullptr) store(x[held], z, pack);
#pragma unroll
    for (int i = 0; i < N; i++)
      squares = fmaf(x[held][i], x[held][i], squares);
  }
  const float mean_square = group_sum({squares, 0}, buffer).x * shape.inv_width;
  const float rstd = 1.0f / sqrtf(mean_square + shape.eps);
  if (!has_row) return;
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
    if (column >= shape.row_packs) continue;
    float scale[N];
    load_weight(weight, column, shape.weight_offset, scale);
#pragma unroll
    for (int i = 0; i < N; i++)
      x[held][i] = x[held][i] * rstd * scale[i];
    store(x[held], y, row * shape.row_packs + column);
  }
  if (threadIdx.x == 0) rstd_out[row] = rstd;
}

template <typename T, int N>
__global__ void __launch_bounds__(256) rms_apply(int64_t n_rows,
                                                 int row_packs,
                                                 const T* z,
                                                 const float* __restrict__ rstds,
                                                 const T* __restrict__ weight,
                                                 float weight_offset,
                                                 T* y) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= n_rows) return;
  const float rstd = rstds[row];
  for (int column = static_cast<int>(threadIdx.x); column < row_packs; column += kWarp) {
    float x[N], scale[N];
    load(z, row * row_packs + column, x);
    load_weight(weight, column, weight_offset, scale);
#pragma unroll
    for (int i = 0; i < N; i++)
      x[i] = x[i] * rstd * scale[i];
    store(x, y, row * row_packs + column);
  }
}

/** partial (blocks, W): the block's sums for dweight. */
template <typename T, int N, int kHeld>
__global__ void __launch_bounds__(kMaxThreads, kHeld == 1 ? 2 : 1)
    rms_backward(RowShape shape,
                 const T* dy,
                 const T* z,
                 const float* __restrict__ rstds,
                 const T* __restrict__ weight,
                 const T* d_sum,
                 T* dz,
                 float* partial) {
  __shared__ float2 buffers[2][kMaxWarps];
  __shared__ float shared_sum[N][kMaxThreads];
  float sums[kHeld][N] = {};
  int turn = 0;
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.y; first < shape.n_rows;
       first += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    const int64_t row = first + threadIdx.y;
    const bool has_row = row < shape.n_rows;
    const float rstd = has_row ? rstds[row] : 0;
    float x[kHeld][N], d[kHeld][N];  // normalised z; gradient of it
    float dot = 0;
#pragma unroll
    for (int held = 0; held < kHeld; held++) {
      const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
      const int64_t pack = row * shape.row_packs + column;
      if (!has_row || column >= shape.row_packs) continue;
      float scale[N];
      load(z, pack, x[held]);
      load(dy, pack, d[held]);
      load_weight(weight, column, shape.weight_offset, scale);
#pragma unroll
      for (int i = 0; i < N; i++) {
        x[held][i] *= rstd;
        sums[held][i] = fmaf(d[held][i], x[held][i], sums[held][i]);
        d[held][i] *= scale[i];
        dot = fmaf(d[held][i], x[held][i], dot);
      }
    }
    dot = group_sum({dot, 0}, buffers[turn]).x * shape.inv_width;
    turn ^= 1;
#pragma unroll
    for (int held = 0; held < kHeld; held++) {
      const int column = static_cast<int>(threadIdx.x + held * blockDim.x);
      const int64_t pack = row * shape.row_packs + column;
      if (!has_row || column >= shape.row_packs) continue;
      float other[N] = {};
      if (d_sum != nullptr) load(d_sum, pack, other);
#pragma unroll
      for (int i = 0; i < N; i++)
        d[held][i] = rstd * (d[held][i] - x[held][i] * dot) + other[i];
      store(d[held], dz, pack);
    }
  }
  add_groups(sums, shared_sum, shape.row_packs,
             partial + static_cast<int64_t>(blockIdx.x) * shape.row_packs * N);
}

RowShape row_shape(int64_t T, int64_t W, int pack, float eps, float weight_offset) {
  return {T, static_cast<int>(W / pack), eps, 1.0f / static_cast<float>(W), weight_offset};
}

void residual_rms_norm_forward(const RmsNormForward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const Groups groups = forward_groups(W / kPack, kPack);
        with_held<kPack>(groups.held, [&]<int kHeld>(IntIs<kHeld>) {
          rms_forward<E, kPack, kHeld><<<static_cast<unsigned>(ceil_div(T, groups.groups)),
                                         groups.block(), 0, as_stream(on.stream)>>>(
              row_shape(T, W, kPack, its.eps, its.weight_offset), as<E>(its.a), as<E>(its.residual),
              as<E>(its.weight), as<E>(its.z), its.rstd, as<E>(its.y));
        });
      },
      its.a, its.residual, its.weight, its.z, its.y);
  check_launch("rms_forward");
}

void rms_norm_apply(const RmsNormApply& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  if (T == 0) return;
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        constexpr int kRows = 256 / kWarp;
        rms_apply<E, kPack><<<static_cast<unsigned>(ceil_div(T, kRows)), dim3(kWarp, kRows), 0,
                              as_stream(on.stream)>>>(T, static_cast<int>(W / kPack), as<E>(its.z),
                                                      its.rstd, as<E>(its.weight),
                                                      its.weight_offset, as<E>(its.y));
      },
      its.z, its.weight, its.y);
  check_launch("rms_apply");
}

void residual_rms_norm_backward(const RmsNormBackward& its, const Launch& on) {
  const auto [type, T, W] = its.extent;
  const int n_blocks = static_cast<int>(n_norm_backward_blocks(T));
  with_packs(
      type, W,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        const Groups groups = backward_groups(W / kPack, kPack);
        if (n_blocks > 0) {
          with_held<kPack>(groups.held, [&]<int kHeld>(IntIs<kHeld>) {
            rms_backward<E, kPack, kHeld><<<n_blocks, groups.block(), 0, as_stream(on.stream)>>>(
                row_shape(T, W, kPack, 0, its.weight_offset), as<E>(its.dy), as<E>(its.z), its.rstd,
                as<E>(its.weight), as<E>(its.d_sum), as<E>(its.dz), as<float>(on.scratch));
          });
          check_launch("rms_backward");
        }
        launch_sum_partials<E>(on, n_blocks, W, 1, {as<E>(its.dweight)});
      },
      its.dy, its.z, its.weight, its.d_sum, its.dz);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::RmsNormKernels ferry::ops::kCudaRmsNorm = {
    .residual_rms_norm_forward = cuda::residual_rms_norm_forward,
    .rms_norm_apply = cuda::rms_norm_apply,
    .residual_rms_norm_backward = cuda::residual_rms_norm_backward};
