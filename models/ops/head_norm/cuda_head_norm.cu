// The norm of each head of queries and keys on CUDA: a warp owns a head's row and holds it in
// registers.

#include <algorithm>

#include "models/ops/cuda/cuda_reduce.h"
#include "models/ops/cuda/cuda_weight.h"
#include "models/ops/cuda_scratch.h"
#include "models/ops/head_norm/head_norm.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kWarps = 8;  // of a block

struct HeadShape {
  int64_t n_tokens;
  int n_heads, n_normed, n_all;
  int row_packs;
  float inv_width;
  float eps, weight_offset;
};

template <typename T, int N, int kHeld>
__global__ void __launch_bounds__(kWarps* kWarp) head_norm(HeadShape shape,
                                                           const T* x,
                                                           const T* __restrict__ q_weight,
                                                           const T* __restrict__ k_weight,
                                                           float* __restrict__ rstds,
                                                           T* y) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.y;
  if (row >= shape.n_tokens * shape.n_all) return;
  const int64_t token = row / shape.n_all;
  const int head = static_cast<int>(row - token * shape.n_all);
  float values[kHeld][N];
  float squares = 0;
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    const int column = static_cast<int>(threadIdx.x) + held * kWarp;
    if (column >= shape.row_packs) continue;
    load(x, row * shape.row_packs + column, values[held]);
#pragma unroll
    for (int i = 0; i < N; i++)
      squares = fmaf(values[held][i], values[held][i], squares);
  }
  const bool is_normed = head < shape.n_normed;
  const T* weight = head < shape.n_heads ? q_weight : k_weight;
  const float rstd = 1.0f / sqrtf(warp_sum(squares) * shape.inv_width + shape.eps);
#pragma unroll
  for (int held = 0; held < kHeld; held++) {
    const int column = static_cast<int>(threadIdx.x) + held * kWarp;
    if (column >= shape.row_packs) continue;
    if (is_normed) {
      float scale[N];
      load_weight(weight, column, shape.weight_offset, scale);
#pragma unroll
      for (int i = 0; i < N; i++)
        values[held][i] = values[held][i] * rstd * scale[i];
    }
    store(values[held], y, row * shape.row_packs + column);
  }
  if (is_normed && threadIdx.x == 0) rstds[token * shape.n_normed + head] = rstd;
}

/** blockIdx.y: 0 queries, 1 keys. partial (blocks, 2, head width): the block's sums for their
 * weights' gradients. */
template <typename T, int N, int kHeld>
__global__ void __launch_bounds__(kWarps* kWarp) head_norm_grad(HeadShape shape,
                                                                const T* x,
                                                                const float* __restrict__ rstds,
                                                                const T* __restrict__ q_weight,
                                                                const T* __restrict__ k_weight,
                                                                T* d,
                                                                float* partial) {
  __shared__ float shared[kHeld * kWarp * N];
  const bool is_query = blockIdx.y == 0;
  const T* weight = is_query ? q_weight : k_weight;
  const int first_head = is_query ? 0 : shape.n_heads;
  const int n_heads = is_query ? shape.n_heads : shape.n_normed - shape.n_heads;
  float sums[kHeld][N] = {};
  for (int64_t i_row = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.y;
       i_row < shape.n_tokens * n_heads; i_row += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t token = i_row / n_heads;
    const int head = first_head + static_cast<int>(i_row - token * n_heads);
    const int64_t first_pack = (token * shape.n_all + head) * shape.row_packs;
    const float rstd = rstds[token * shape.n_normed + head];
    float unit[kHeld][N], dy[kHeld][N];
    float dot = 0;
#pragma unroll
    for (int held = 0; held < kHeld; held++) {
      const int column = static_cast<int>(threadIdx.x) + held * kWarp;
      if (column >= shape.row_packs) continue;
      float scale[N];
      load(x, first_pack + column, unit[held]);
      load(d, first_pack + column, dy[held]);
      load_weight(weight, column, shape.weight_offset, scale);
#pragma unroll
      for (int i = 0; i < N; i++) {
        unit[held][i] *= rstd;
        sums[held][i] = fmaf(dy[held][i], unit[held][i], sums[held][i]);
        dy[held][i] *= scale[i];
        dot = fmaf(dy[held][i], unit[held][i], dot);
      }
    }
    dot = warp_sum(dot) * shape.inv_width;
#pragma unroll
    for (int held = 0; held < kHeld; held++) {
      const int column = static_cast<int>(threadIdx.x) + held * kWarp;
      if (column >= shape.row_packs) continue;
#pragma unroll
      for (int i = 0; i < N; i++)
        dy[held][i] = rstd * (dy[held][i] - unit[held][i] * dot);
      store(dy[held], d, first_pack + column);
    }
  }
  // The block's warps add up in order.
  for (int warp = 0; warp < kWarps; warp++) {
    if (threadIdx.y == warp) {
#pragma unroll
      for (int held = 0; held < kHeld; held++) {
#pragma unroll
        for (int i = 0; i < N; i++) {
          float& at = shared[(held * kWarp + threadIdx.x) * N + i];
          at = warp == 0 ? sums[held][i] : at + sums[held][i];
        }
      }
    }
    __syncthreads();
  }
  const int width = shape.row_packs * N;
  float* out = partial + (static_cast<int64_t>(blockIdx.x) * 2 + blockIdx.y) * width;
  for (int i = static_cast<int>(threadIdx.y) * kWarp + threadIdx.x; i < width; i += kWarps * kWarp)
    out[i] = shared[i];
}

HeadShape shape_of(const HeadRows& rows, int pack, float eps, float weight_offset) {
  return {.n_tokens = rows.T,
          .n_heads = static_cast<int>(rows.n_heads),
          .n_normed = static_cast<int>(rows.n_normed()),
          .n_all = static_cast<int>(rows.n_all()),
          .row_packs = static_cast<int>(rows.head_width / pack),
          .inv_width = 1.0f / static_cast<float>(rows.head_width),
          .eps = eps,
          .weight_offset = weight_offset};
}

/** Calls work(IntIs<packs a thread holds>). */
template <int kPack, typename Work>
void with_held_of(int64_t head_width, Work&& work) {
  constexpr int kMost = kHeadNormWidth_max / kWarp / kPack;
  expect(head_width <= kHeadNormWidth_max, "heads up to 512 wide", static_cast<double>(head_width));
  if (head_width <= kWarp * kPack) return work(IntIs<1>{});
  work(IntIs<kMost>{});
}

void head_norm_forward(const HeadNormForward& its, const Launch& on) {
  const HeadRows& rows = its.rows;
  if (rows.T == 0) return;
  with_packs(
      rows.type, rows.head_width,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        with_held_of<kPack>(rows.head_width, [&]<int kHeld>(IntIs<kHeld>) {
          head_norm<E, kPack, kHeld>
              <<<static_cast<unsigned>(ceil_div(rows.T * rows.n_all(), kWarps)),
                 dim3(kWarp, kWarps), 0, as_stream(on.stream)>>>(
                  shape_of(rows, kPack, its.eps, its.weight_offset), as<E>(its.x),
                  as<E>(its.q_weight), as<E>(its.k_weight), its.rstd, as<E>(its.y));
        });
      },
      its.x, its.q_weight, its.k_weight, its.y);
  check_launch("head_norm");
}

void head_norm_backward(const HeadNormBackward& its, const Launch& on) {
  const HeadRows& rows = its.rows;
  const int n_blocks = static_cast<int>(n_norm_backward_blocks(rows.T));
  with_packs(
      rows.type, rows.head_width,
      [&]<typename E, int kPack>(TypeIs<E>, IntIs<kPack>) {
        if (n_blocks > 0) {
          with_held_of<kPack>(rows.head_width, [&]<int kHeld>(IntIs<kHeld>) {
            head_norm_grad<E, kPack, kHeld>
                <<<dim3(n_blocks, 2), dim3(kWarp, kWarps), 0, as_stream(on.stream)>>>(
                    shape_of(rows, kPack, 0, its.weight_offset), as<E>(its.x), its.rstd,
                    as<E>(its.q_weight), as<E>(its.k_weight), as<E>(its.d), as<float>(on.scratch));
          });
          check_launch("head_norm_grad");
        }
        launch_sum_partials<E>(on, n_blocks, rows.head_width, 2,
                               {as<E>(its.dq_weight), as<E>(its.dk_weight)});
      },
      its.x, its.q_weight, its.k_weight, its.d);
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::HeadNormKernels ferry::ops::kCudaHeadNorm = {
    .head_norm_forward = cuda::head_norm_forward, .head_norm_backward = cuda::head_norm_backward};
