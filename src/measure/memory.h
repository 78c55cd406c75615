#pragma once
// The memory that a training process takes beside its plan: LibTorch, libraries' first use,
// threads, the kernels that are loaded, CUDA graphs. Seen on steps of a small model, before
// anything else in the process: what was used before is not seen again. Private to src/measure.

#include <functional>
#include <string>
#include <vector>

#include "models/core/tensor_table.h"
#include "offload/device/device.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::measure {

struct TakenMemory {
  ProcessMemory on_cpu, on_gpu;
  KernelMemory kernels;
};

/** Resident memory of this process, without that of plans: their arenas alone ask for large pages.
 * The trainer's own code and libraries count. */
int64_t resident_beside_plans_bytes();

/**   MemoryWatch watch(skipped);      // trains on the CPU
 *    const CudaProbe probe = probe_cuda();
 *    if (probe.usable) watch.see_gpu(probe);
 *
 *  What cannot be measured is told in `skipped`, and zero. */
class MemoryWatch {
 public:
  explicit MemoryWatch(std::vector<std::string>& skipped);
  /** Right after the context was made. */
  void see_gpu(const CudaProbe& probe);
  const TakenMemory& taken() const { return taken_; }

 private:
  void keep_trying(const char* what, const std::function<void()>& work);
  void train_on_gpu(DType type, AttentionBackend attention);
  void run_kernels_that_spill(const CudaProbe& probe, DType type, AttentionBackend attention);

  std::vector<std::string>& skipped_;
  TakenMemory taken_;
  int64_t before_context_bytes_ = 0;
};

}  // namespace ferry::measure
