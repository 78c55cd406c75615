#pragma once
// Memory of a CUDA device: one allocation on the GPU, or pinned pages on the host. Private to
// cuda_device.cpp.

#include <cuda_runtime.h>

#include <memory>

#include "offload/device.h"

namespace ferry {

/** Throws Error(machine) with the call's text. */
void check_cuda(cudaError_t status, const char* call);
#define FERRY_CUDA(call) ::ferry::check_cuda((call), #call)

struct CudaFree {
  void operator()(void* p) const { cudaFree(p); }
};
using GpuBytes = std::unique_ptr<std::byte, CudaFree>;

/** Zero-filled; throws Error(does_not_fit). */
std::unique_ptr<Reservation> reserve_gpu(int64_t n_bytes);
std::unique_ptr<Reservation> reserve_pinned(int64_t n_bytes);

}  // namespace ferry
