// Stands in for cuda_allocator.cpp in a build without CUDA, where no session has a GPU to give it a
// region of.

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/engine/cuda/cuda_allocator.h"

namespace ferry {

CudaLibraryRegion::CudaLibraryRegion(std::byte*, int64_t, void* stream) : stream_(stream) {
  FERRY_CHECK(false, "no CUDA in this build");
}
CudaLibraryRegion::~CudaLibraryRegion() = default;

const RegionAllocator& CudaLibraryRegion::current() {
  FERRY_CHECK(false, "no CUDA in this build");
}

int64_t cuda_library_workspace_bytes() {
  return 0;
}

}  // namespace ferry
