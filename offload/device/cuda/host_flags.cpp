#include "offload/device/cuda/host_flags.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <thread>

#include "offload/device/cuda/cuda_stream.h"
#include "src/base/error.h"

namespace ferry {

HostFlags::HostFlags(HostWaits waits) : flags_(allocate_pinned<uint32_t>(kFlags_max)) {
  if (waits == HostWaits::threads) return;
  FERRY_CUDA(cudaHostGetDevicePointer(&on_gpu_, flags_.get(), 0));
  if (find_entry("cuStreamWaitValue32", stream_wait_value_) && waits_on_trial()) return;
  stream_wait_value_ = nullptr;
  if (waits == HostWaits::driver)
    throw Error(Fault::machine, "cuda", "the driver has no stream memory operations",
                "update the NVIDIA driver, or unset FERRY_HOST_WAITS");
}

/** Some drivers have the call and refuse it, as those of virtual GPUs may; and what the CPU stores
 * must reach a stream that waits already. */
bool HostFlags::waits_on_trial() {
  using namespace std::chrono_literals;
  auto stream = std::make_unique<Stream>();
  const int flag = make();
  if (wait_value(stream->get(), flag, 1) != CUDA_SUCCESS) return false;
  std::this_thread::sleep_for(1ms);
  const bool waits = cudaStreamQuery(stream->get()) == cudaErrorNotReady;
  raise(flag, 1);
  const auto end = std::chrono::steady_clock::now() + 5s;
  while (cudaStreamQuery(stream->get()) == cudaErrorNotReady) {
    if (std::chrono::steady_clock::now() > end) {
      static_cast<void>(stream.release());  // its end would be waited for
      return false;
    }
    std::this_thread::sleep_for(20us);
  }
  return waits;
}

int HostFlags::make() {
  FERRY_CHECK(n_ < kFlags_max, "{} events of the host queue", n_);
  return n_++;
}

void HostFlags::raise(int flag, uint32_t generation) {
  auto word = at(flag);
  for (uint32_t seen = word.load();
       seen < generation && !word.compare_exchange_weak(seen, generation);) {
  }
  word.notify_all();
}

void HostFlags::await(int flag, uint32_t generation) const {
  auto word = at(flag);
  for (uint32_t seen = word.load(); seen < generation; seen = word.load())
    word.wait(seen);
}

CUresult HostFlags::wait_value(cudaStream_t stream, int flag, uint32_t generation) const {
  const auto address = reinterpret_cast<CUdeviceptr>(static_cast<uint32_t*>(on_gpu_) + flag);
  return stream_wait_value_(reinterpret_cast<CUstream>(stream), address, generation,
                            CU_STREAM_WAIT_VALUE_GEQ);
}

void HostFlags::await_on(cudaStream_t stream, int flag, uint32_t generation) const {
  const CUresult status = wait_value(stream, flag, generation);
  if (status != CUDA_SUCCESS)
    throw Error(Fault::machine, "cuda",
                fmt::format("cuStreamWaitValue32: error {}", static_cast<int>(status)),
                "update the NVIDIA driver, or set FERRY_HOST_WAITS=threads");
}

void HostFlags::release() {
  for (int flag = 0; flag < kFlags_max; ++flag) {
    at(flag).store(kReleased, std::memory_order_release);
    at(flag).notify_all();
  }
}

}  // namespace ferry
