#include "offload/device/cuda/cuda_math.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int64_t kChunks_max = 1 << 19;  // chunks of a block: 2 G elements

}  // namespace

CudaMath::CudaMath(cudaStream_t stream)
    : stream_(stream), chunk_sums_(allocate_gpu<double>(kChunks_max)) {}

void CudaMath::update(std::span<const simd::UpdateArgs> tensors) {
  for (const simd::UpdateArgs& args : tensors)
    simd::cuda::update(args, stream_);
}

void CudaMath::accumulate(float* sum, const void* g, DType type, int64_t n, bool first) {
  if (first)
    simd::cuda::accumulate_first(sum, g, type, n, stream_);
  else
    simd::cuda::accumulate(sum, g, type, n, stream_);
}

void CudaMath::square_sum(const void* g, DType type, int64_t n, double* total) {
  FERRY_CHECK(simd::norm_chunks(n) <= kChunks_max, "gradients of {} elements", n);
  simd::cuda::square_sum(g, type, n, total, chunk_sums_.get(), stream_);
}

void CudaMath::square_sum_chunks(const void* g, DType type, int64_t n, double* sums) {
  simd::cuda::square_sum_chunks(g, type, n, sums, stream_);
}

void CudaMath::zero(void* to, int64_t n_bytes) {
  FERRY_CUDA(cudaMemsetAsync(to, 0, static_cast<size_t>(n_bytes), stream_));
}

}  // namespace ferry
