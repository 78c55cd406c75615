#pragma once
// LibTorch's CUDA allocator replaced by Ferry's: what ATen allocates on the GPU lies in the library
// region of a session: the one whose stream allocates. Private to src/engine.

#include <cstddef>
#include <cstdint>

#include "src/engine/cuda/region_allocator.h"

namespace ferry {

/** ATen's CUDA allocations on `stream` (a cudaStream_t) come from [base, base + n_bytes) while it
 * lives. There may be several, each of a stream of its own; allocations on a stream of none lie in
 * the newest. */
class CudaLibraryRegion {
 public:
  CudaLibraryRegion(std::byte* base, int64_t n_bytes, void* stream);
  ~CudaLibraryRegion();
  CudaLibraryRegion(const CudaLibraryRegion&) = delete;
  CudaLibraryRegion& operator=(const CudaLibraryRegion&) = delete;

  const RegionAllocator& allocator() const { return allocator_; }
  /** The allocator of LibTorch's current stream. */
  static const RegionAllocator& current();

 private:
  RegionAllocator allocator_;
  void* stream_;
};

/** The bytes that cuBLAS and cuBLASLt keep for their stream. */
int64_t cuda_library_workspace_bytes();

}  // namespace ferry
