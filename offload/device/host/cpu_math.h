#pragma once
// Arithmetic of the simulated device's compute queue and of the host queue: simd/ spread over the
// worker pool. Chunks are fixed by the tensors, so the number of workers changes no bit. One object
// a queue: it keeps the list of pieces between calls.

#include <vector>

#include "offload/device/device.h"
#include "offload/device/host/worker_pool.h"

namespace ferry {

class CpuMath final : public DeviceMath {
 public:
  explicit CpuMath(WorkerPool& pool) : pool_(pool) {}
  void update(std::span<const simd::UpdateArgs> tensors) override;
  void accumulate(float* sum, const void* g, DType type, int64_t n, bool first) override;
  void square_sum(const void* g, DType type, int64_t n, double* total) override;
  void square_sum_chunks(const void* g, DType type, int64_t n, double* sums) override;
  void zero(void* to, int64_t n_bytes) override;

 private:
  /** A piece of a tensor: at least simd::kTask_elements, but for a tensor's last. */
  struct Task {
    size_t tensor;
    int64_t begin;
    int64_t n;
  };
  void split(size_t tensor, int64_t n_elements);
  template <class Work>
  void for_tasks(const Work& work);

  WorkerPool& pool_;
  std::vector<Task> tasks_;
  std::vector<double> chunk_sums_;
};

}  // namespace ferry
