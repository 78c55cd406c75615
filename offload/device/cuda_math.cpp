#include "offload/device/cuda_math.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int64_t kTensors_max = 4096;
constexpr int64_t kChunks_max = 1 << 19;  // chunks of a block: 2 G elements

}  // namespace

CudaMath::CudaMath(cudaStream_t stream)
    : stream_(stream),
      tensor_sums_(allocate_gpu<double>(kTensors_max)),
      chunk_sums_(allocate_gpu<double>(kChunks_max)) {}

void CudaMath::adamw(std::span<const simd::AdamwArgs> tensors) {
  for (const simd::AdamwArgs& args : tensors)
    simd::cuda::adamw(args, stream_);
}

void CudaMath::accumulate(float* sum, const void* g, DType type, int64_t n, bool first) {
  if (first)
    simd::cuda::accumulate_first(sum, g, type, n, stream_);
  else
    simd::cuda::accumulate(sum, g, type, n, stream_);
}

void CudaMath::square_sum(const void* g,
                          DType type,
                          std::span<const TensorExtent> tensors,
                          double* total) {
  ranges_.clear();
  int64_t n_chunks = 0;
  for (const TensorExtent& t : tensors) {
    ranges_.push_back({t.offset, t.n_elements});
    n_chunks += simd::norm_chunks(t.n_elements);
  }
  const auto n = static_cast<int64_t>(ranges_.size());
  FERRY_CHECK(n <= kTensors_max && n_chunks <= kChunks_max, "a block of {} tensors, {} chunks", n,
              n_chunks);
  simd::cuda::square_sums(g, type, ranges_.data(), n, tensor_sums_.get(), chunk_sums_.get(),
                          stream_);
  simd::cuda::sum_in_order(tensor_sums_.get(), n, total, stream_);
}

}  // namespace ferry
