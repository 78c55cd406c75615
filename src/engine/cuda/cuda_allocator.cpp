#include "src/engine/cuda/cuda_allocator.h"

#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/cuda/CUDAPluggableAllocator.h>

#include <algorithm>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/error.h"

namespace ferry {
namespace {

/** The regions of all sessions, the newest last. */
struct Regions {
  std::mutex mutex;
  std::vector<std::pair<void*, RegionAllocator*>> by_stream;

  RegionAllocator& of_stream(void* stream) {
    const auto found =
        std::ranges::find(by_stream, stream, &std::pair<void*, RegionAllocator*>::first);
    if (found != by_stream.end()) return *found->second;
    if (by_stream.empty())
      throw Error(Fault::does_not_fit, "engine.allocate",
                  "LibTorch asks for memory of the GPU beside any session",
                  "this is a fault of Ferry: please report it with `ferry doctor --json`");
    return *by_stream.back().second;
  }
};
Regions& regions() {
  static Regions all;
  return all;
}

void* allocate(size_t n_bytes, int, cudaStream_t stream) {
  std::lock_guard lock(regions().mutex);
  return regions().of_stream(stream).allocate(static_cast<int64_t>(n_bytes));
}
void free(void* data, size_t, int, cudaStream_t) {
  std::lock_guard lock(regions().mutex);
  for (const auto& [stream, region] : regions().by_stream)
    if (region->has(data)) return region->free(data);
  // Its region has gone, and the memory with it.
}

/** LibTorch takes an allocator once a process, before its first allocation; regions come and go
 * behind it. */
void install() {
  static const bool installed = [] {
    auto allocator = torch::cuda::CUDAPluggableAllocator::createCustomAllocator(allocate, free);
    torch::cuda::CUDAPluggableAllocator::changeCurrentAllocator(allocator);
    return true;
  }();
  static_cast<void>(installed);
}

/** cuBLAS keeps a workspace for each of its handles and streams: (handle, stream). */
void drop_workspaces(void* stream) {
  for (at::cuda::WorkspaceMapWithMutex* workspaces :
       {&at::cuda::cublas_handle_stream_to_workspace(),
        &at::cuda::cublaslt_handle_stream_to_workspace()}) {
    std::unique_lock lock(workspaces->mutex);
    std::erase_if(workspaces->map,
                  [&](const auto& entry) { return std::get<1>(entry.first) == stream; });
  }
}

}  // namespace

CudaLibraryRegion::CudaLibraryRegion(std::byte* base, int64_t n_bytes, void* stream)
    : stream_(stream) {
  allocator_.set_region(base, n_bytes);
  {
    std::lock_guard lock(regions().mutex);
    regions().by_stream.emplace_back(stream, &allocator_);
  }
  install();
}

CudaLibraryRegion::~CudaLibraryRegion() {
  drop_workspaces(stream_);
  std::lock_guard lock(regions().mutex);
  std::erase_if(regions().by_stream, [&](const auto& its) { return its.second == &allocator_; });
}

const RegionAllocator& CudaLibraryRegion::current() {
  std::lock_guard lock(regions().mutex);
  return regions().of_stream(c10::cuda::getCurrentCUDAStream().stream());
}

int64_t cuda_library_workspace_bytes() {
  return static_cast<int64_t>(at::cuda::getChosenWorkspaceSize() +
                              at::cuda::getCUDABlasLtWorkspaceSize());
}

}  // namespace ferry
