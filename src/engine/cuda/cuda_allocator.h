#pragma once
// LibTorch's CUDA allocator replaced by Ferry's: every allocation of ATen on the GPU lies in the
// run's library region. Private to src/engine.

#include <cstddef>
#include <cstdint>

#include "src/engine/cuda/region_allocator.h"

namespace ferry {

/** ATen's CUDA allocations come from [base, base + n_bytes) while it lives. One at a time. */
class CudaLibraryRegion {
 public:
  CudaLibraryRegion(std::byte* base, int64_t n_bytes);
  ~CudaLibraryRegion();
  CudaLibraryRegion(const CudaLibraryRegion&) = delete;
  CudaLibraryRegion& operator=(const CudaLibraryRegion&) = delete;

  static const RegionAllocator& allocator();
};

/** The bytes that cuBLAS and cuBLASLt keep for their stream. */
int64_t cuda_library_workspace_bytes();

}  // namespace ferry
