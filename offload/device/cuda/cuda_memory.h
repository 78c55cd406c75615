#pragma once
// Memory of a CUDA device: one allocation on the GPU, or pages of the host, pinned or not. Private
// to the CUDA device.

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "offload/device/device.h"
#include "offload/device/host/pinning.h"

namespace ferry {

/** A call of the driver, of CUDA 12.0 or later; false where this driver has none. */
template <class Function>
bool find_entry(const char* name, Function& function) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  if (cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found) !=
          cudaSuccess ||
      found != cudaDriverEntryPointSuccess || !entry) {
    cudaGetLastError();
    return false;
  }
  function = reinterpret_cast<Function>(entry);
  return true;
}

/** Throws Error(machine) with the call's text. */
void check_cuda(cudaError_t status, const char* call);
#define FERRY_CUDA(call) ::ferry::check_cuda((call), #call)

/** This process has a context on the GPU. */
bool has_context(int index);

/** Makes a GPU the thread's current one while it lives. It stays so where this process has no
 * context on the one before: making that one current again would take its memory for one. */
class OnDevice {
 public:
  explicit OnDevice(int index) : index_(index) {
    FERRY_CUDA(cudaGetDevice(&before_));
    if (before_ != index_) FERRY_CUDA(cudaSetDevice(index_));
  }
  ~OnDevice() {
    if (before_ != index_ && has_context(before_)) cudaSetDevice(before_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int index_, before_ = 0;
};

struct FreeGpu {
  void operator()(void* p) const { cudaFree(p); }
};
struct FreePinned {
  void operator()(void* p) const { cudaFreeHost(p); }
};
template <class T>
using GpuArray = std::unique_ptr<T, FreeGpu>;
template <class T>
using PinnedArray = std::unique_ptr<T, FreePinned>;

/** Small arrays of the device itself, zero-filled. */
template <class T>
GpuArray<T> allocate_gpu(int64_t n) {
  void* p = nullptr;
  FERRY_CUDA(cudaMalloc(&p, static_cast<size_t>(n) * sizeof(T)));
  GpuArray<T> array(static_cast<T*>(p));
  // The streams of a device do not wait for the default stream, which fills.
  FERRY_CUDA(cudaMemset(p, 0, static_cast<size_t>(n) * sizeof(T)));
  FERRY_CUDA(cudaStreamSynchronize(nullptr));
  return array;
}
/** The GPU can address it too. */
template <class T>
PinnedArray<T> allocate_pinned(int64_t n) {
  void* p = nullptr;
  FERRY_CUDA(cudaHostAlloc(&p, static_cast<size_t>(n) * sizeof(T), cudaHostAllocMapped));
  std::memset(p, 0, static_cast<size_t>(n) * sizeof(T));
  return PinnedArray<T>(static_cast<T*>(p));
}

/** Pins by the driver. */
std::shared_ptr<Pinning> make_cuda_pinning(int64_t pinned_bytes_max);

/** Zero-filled; throws Error(does_not_fit). */
std::unique_ptr<Reservation> reserve_gpu(int64_t n_bytes);
/** Zero-filled pages of the host; `pinning` pins as much as it can of the part `copied`. Throws
 * Error(does_not_fit). */
std::unique_ptr<Reservation> reserve_host(int64_t n_bytes,
                                          const FirstTouch& touch,
                                          const ByteRange& copied,
                                          std::shared_ptr<Pinning> pinning);

}  // namespace ferry
