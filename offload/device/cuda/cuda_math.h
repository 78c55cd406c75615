#pragma once
// The arithmetic of updates on a GPU, as a device's queues call it. Private to the CUDA device.

#include <cuda_runtime.h>

#include "offload/device/cuda/cuda_memory.h"
#include "offload/device/device.h"
#include "simd/cuda/cuda_kernels.h"

namespace ferry {

/** Launches on `stream`, which outlives it. */
class CudaMath final : public DeviceMath {
 public:
  explicit CudaMath(cudaStream_t stream);
  void update(std::span<const simd::UpdateArgs> tensors) override;
  void accumulate(float* sum, const void* g, DType type, int64_t n, bool first) override;
  void square_sum(const void* g, DType type, int64_t n, double* total) override;
  void square_sum_chunks(const void* g, DType type, int64_t n, double* sums) override;
  void zero(void* to, int64_t n_bytes) override;

 private:
  cudaStream_t stream_;
  GpuArray<double> chunk_sums_;
};

}  // namespace ferry
