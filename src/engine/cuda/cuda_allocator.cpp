#include "src/engine/cuda/cuda_allocator.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <mutex>

namespace ferry {
namespace {

RegionAllocator& region() {
  static RegionAllocator allocator;
  return allocator;
}

/** LibTorch takes an allocator once a process, before its first allocation; regions come and go
 * behind it. */
void install() {
  static const bool installed = [] {
    auto allocator = torch::cuda::CUDAPluggableAllocator::createCustomAllocator(
        [](size_t n_bytes, int, cudaStream_t) {
          return region().allocate(static_cast<int64_t>(n_bytes));
        },
        [](void* data, size_t, int, cudaStream_t) { region().free(data); });
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(allocator);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace

CudaLibraryRegion::CudaLibraryRegion(std::byte* base, int64_t n_bytes) {
  region().set_region(base, n_bytes);
  install();
}

CudaLibraryRegion::~CudaLibraryRegion() {
  at::cuda::clearCublasWorkspaces();
}

const RegionAllocator& CudaLibraryRegion::allocator() {
  return region();
}

int64_t cuda_library_workspace_bytes() {
  return static_cast<int64_t>(at::cuda::getChosenWorkspaceSize() +
                              at::cuda::getCUDABlasLtWorkspaceSize());
}

}  // namespace ferry
