// The softmax of capped scores on CUDA: one block of threads a row, in sums whose order its width
// alone fixes.

#include "models/ops/attention/capped_softmax.h"
#include "models/ops/cuda/cuda_block_reduce.h"

namespace ferry::ops::cuda {
namespace {

constexpr int kThreads = 256;

/** The row of blockIdx.x. */
struct Row {
  int64_t first;    ///< element of its column 0
  int from, to;     ///< the columns that it sees
  int64_t in_mask;  ///< element of the mask of its column 0

  __device__ explicit Row(const ScoreBlock& block) {
    const int64_t head = blockIdx.x / block.n_rows;
    const int64_t row = block.first_row + blockIdx.x % block.n_rows;
    first = static_cast<int64_t>(blockIdx.x) * block.n_columns;
    const int64_t before = block.window > 0 ? row + 1 - block.window : 0;
    from = static_cast<int>(before > block.first_column ? before - block.first_column : 0);
    to = static_cast<int>(block.causal ? row + 1 - block.first_column : block.n_columns);
    in_mask = block.first_element + (head * block.length + row) * block.length + block.first_column;
  }
};

__device__ inline float capped(const ScoreBlock& block, float product) {
  return block.cap * tanhf(product * (block.scale / block.cap));
}

/** The largest score of the row, and the sum of the exponentials. */
__device__ inline float2 moments_of(const ScoreBlock& block, const Row& row) {
  float most = -INFINITY, sum = 0;
  for (int i = row.from + static_cast<int>(threadIdx.x); i < row.to; i += kThreads)
    most = fmaxf(most, capped(block, block.products[row.first + i]));
  most = combine_block<kThreads>(most, Larger());
  for (int i = row.from + static_cast<int>(threadIdx.x); i < row.to; i += kThreads)
    sum += expf(capped(block, block.products[row.first + i]) - most);
  return {most, combine_block<kThreads>(sum, Plus())};
}

__device__ inline float kept(const Mask& mask, int64_t element) {
  if (!mask.on) return 1;
  return simd::philox_element(element, mask.key) >= mask.threshold ? mask.scale : 0.0f;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) capped_softmax(ScoreBlock block, Mask mask, T* p) {
  mask.load_key();
  const Row row(block);
  const float2 moments = moments_of(block, row);
  for (int i = static_cast<int>(threadIdx.x); i < block.n_columns; i += kThreads) {
    float x = 0;
    if (i >= row.from && i < row.to)
      x = expf(capped(block, block.products[row.first + i]) - moments.x) / moments.y *
          kept(mask, row.in_mask + i);
    store_rounded(x, p[row.first + i]);
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    capped_softmax_grad(ScoreBlock block, Mask mask, const float* dp, T* p, T* d_products) {
  mask.load_key();
  const Row row(block);
  const float2 moments = moments_of(block, row);
  float dot = 0;
  for (int i = row.from + static_cast<int>(threadIdx.x); i < row.to; i += kThreads) {
    const float x = expf(capped(block, block.products[row.first + i]) - moments.x) / moments.y;
    dot = fmaf(x * kept(mask, row.in_mask + i), dp[row.first + i], dot);
  }
  dot = combine_block<kThreads>(dot, Plus());
  for (int i = static_cast<int>(threadIdx.x); i < block.n_columns; i += kThreads) {
    float dropped = 0, d = 0;
    if (i >= row.from && i < row.to) {
      const float score = capped(block, block.products[row.first + i]), share = score / block.cap;
      const float x = expf(score - moments.x) / moments.y, keep = kept(mask, row.in_mask + i);
      dropped = x * keep;
      d = x * (dp[row.first + i] * keep - dot) * (1.0f - share * share) * block.scale;
    }
    store_rounded(dropped, p[row.first + i]);
    store_rounded(d, d_products[row.first + i]);
  }
}

void run_capped_softmax(const CappedSoftmax& its, const Launch& on) {
  const ScoreBlock& block = its.block;
  with_type(block.type, [&](auto element) {
    using T = typename decltype(element)::type;
    capped_softmax<T><<<static_cast<unsigned>(block.n_heads * block.n_rows), kThreads, 0,
                        as_stream(on.stream)>>>(block, Mask(block.dropout), as<T>(its.p));
  });
  check_launch("capped_softmax");
}

void run_capped_softmax_backward(const CappedSoftmaxBackward& its, const Launch& on) {
  const ScoreBlock& block = its.block;
  with_type(block.type, [&](auto element) {
    using T = typename decltype(element)::type;
    capped_softmax_grad<T><<<static_cast<unsigned>(block.n_heads * block.n_rows), kThreads, 0,
                             as_stream(on.stream)>>>(block, Mask(block.dropout), its.dp,
                                                     as<T>(its.p), as<T>(its.d_products));
  });
  check_launch("capped_softmax_grad");
}

}  // namespace
}  // namespace ferry::ops::cuda

const ferry::ops::CappedSoftmaxKernels ferry::ops::kCudaCappedSoftmax = {
    .capped_softmax = cuda::run_capped_softmax,
    .capped_softmax_backward = cuda::run_capped_softmax_backward};
