#pragma once
// Words of pinned memory that host work raises and others wait for: other host work, and the GPU's
// queues, in the driver (stream memory operations) where it has them. Private to the CUDA device.

#include <cuda.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "offload/device/cuda/cuda_memory.h"
#include "offload/device/device.h"

namespace ferry {

/** One word for each event that host work records: others wait for it to reach a generation. Any
 * thread may call any function but make(). */
class HostFlags {
 public:
  /** Looks for what the GPU needs to wait by itself, and tries it. Throws Error(machine) where
   * `waits` is driver and it cannot. */
  explicit HostFlags(HostWaits waits);

  int make();
  /** Never lowers a flag: release() may come between. */
  void raise(int flag, uint32_t generation);
  void await(int flag, uint32_t generation) const;
  uint32_t generation(int flag) const { return at(flag).load(std::memory_order_acquire); }
  /** True where await_on() can be called. */
  bool gpu_can_wait() const { return stream_wait_value_ != nullptr; }
  /** Lets the work that `stream` is given from now on run only once the flag has reached the
   * generation. */
  void await_on(cudaStream_t stream, int flag, uint32_t generation) const;
  /** Lets everything that waits for host work, now or later, go on after a failure. */
  void release();

 private:
  static constexpr int kFlags_max = 1 << 16;
  /** Beyond every generation. The GPU compares the sign of a difference, so not UINT32_MAX. */
  static constexpr uint32_t kReleased = INT32_MAX;
  std::atomic_ref<uint32_t> at(int flag) const {
    return std::atomic_ref<uint32_t>(flags_.get()[flag]);
  }
  CUresult wait_value(cudaStream_t stream, int flag, uint32_t generation) const;
  bool waits_on_trial();

  PinnedArray<uint32_t> flags_;
  void* on_gpu_ = nullptr;
  int n_ = 0;
  decltype(&cuStreamWaitValue32) stream_wait_value_ = nullptr;
};

}  // namespace ferry
