// Asks the driver about a GPU before anything runs on it, and about its memory.

#include <cuda_runtime.h>
#include <fmt/format.h>

#include "offload/device/cuda/cuda_memory.h"
#include "offload/device/device.h"
#include "offload/device/gpu_support.h"

namespace ferry {

CudaProbe probe_cuda(int index) {
  CudaProbe probe;
  GpuFacts facts;
  // 0 without a driver; the other calls would call that too old.
  cudaDriverGetVersion(&facts.driver_cuda_version);
  int n = 0;
  cudaDeviceProp properties{};
  cudaError_t status = cudaGetDeviceCount(&n);
  if (status == cudaSuccess && n > 0 && index >= n) status = cudaErrorInvalidDevice;
  if (status == cudaSuccess && n > 0) status = cudaGetDeviceProperties(&properties, index);
  if (status == cudaSuccess && n > 0) {
    facts.name = probe.gpu_name = properties.name;
    facts.compute_capability = properties.major * 10 + properties.minor;
  }
  // The refusal comes before anything runs: a missing kernel would show only when it does not run.
  if (auto refusal = refusal_of(facts, gpu_code_of_build())) {
    cudaGetLastError();
    probe.why_not = refusal->what;
    probe.cure = refusal->cure;
    probe.has_gpu = true;
    return probe;
  }
  size_t free = 0, total = 0;
  if (status == cudaSuccess && n > 0) {
    const OnDevice on_device(index);
    status = cudaMemGetInfo(&free, &total);
  }
  if (status != cudaSuccess || n == 0) {
    probe.why_not = facts.driver_cuda_version == 0 ? "there is no NVIDIA driver"
                    : status == cudaSuccess        ? "no NVIDIA GPU"
                                                   : cudaGetErrorString(status);
    probe.cure = "use device = cpu, or see `ferry doctor`";
    probe.has_gpu = n > 0;
    if (status == cudaErrorMemoryAllocation) {
      probe.why_not = fmt::format("other programs have taken all memory of the {}", facts.name);
      probe.cure = "end them, `nvidia-smi` lists them, or use device = cpu";
    }
    cudaGetLastError();
    return probe;
  }
  probe.usable = true;
  probe.compute_capability = facts.compute_capability;
  probe.free_bytes = static_cast<int64_t>(free);
  probe.total_bytes = static_cast<int64_t>(total);
  return probe;
}

CudaProbe probe_other_gpu(int index) {
  CudaProbe probe = probe_cuda(index);
  if (!probe.usable) return probe;
  const OnDevice on_device(index);
  cudaDeviceReset();  // the memory of a context would be missing there
  return probe;
}

int64_t cuda_driver_used_bytes(int index) {
  const OnDevice on_device(index);
  size_t free = 0, total = 0;
  FERRY_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total - free);
}

}  // namespace ferry
