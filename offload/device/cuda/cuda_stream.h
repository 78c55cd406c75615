#pragma once
// Owners of a CUDA stream and of a CUDA event. Private to the CUDA device.

#include <cuda_runtime.h>

#include "offload/device/cuda/cuda_memory.h"

namespace ferry {

class Stream {
 public:
  Stream() { FERRY_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  // Blocking: who waits for a GPU leaves its core to the workers.
  explicit CudaEvent(unsigned int flags = cudaEventDisableTiming | cudaEventBlockingSync) {
    FERRY_CUDA(cudaEventCreateWithFlags(&event_, flags));
  }
  ~CudaEvent() { cudaEventDestroy(event_); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace ferry
