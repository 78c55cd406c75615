#include "offload/cuda_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

class GpuReservation final : public Reservation {
 public:
  explicit GpuReservation(int64_t n_bytes) : n_bytes_(n_bytes) {
    if (n_bytes == 0) return;
    void* p = nullptr;
    if (cudaMalloc(&p, static_cast<size_t>(n_bytes)) != cudaSuccess) {
      cudaGetLastError();
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      throw Error(Fault::does_not_fit, "device.reserve",
                  fmt::format("{} of GPU memory asked for, {} of {} are free",
                              format_bytes(n_bytes), format_bytes(static_cast<int64_t>(free)),
                              format_bytes(static_cast<int64_t>(total))),
                  "lower gpu_memory, or close what else uses the card");
    }
    data_.reset(static_cast<std::byte*>(p));
    // The streams of a device do not wait for the default stream, which fills.
    FERRY_CUDA(cudaMemset(p, 0, static_cast<size_t>(n_bytes)));
    FERRY_CUDA(cudaStreamSynchronize(nullptr));
  }
  std::byte* data() override { return data_.get(); }
  int64_t n_bytes() const override { return n_bytes_; }

 private:
  GpuArray<std::byte> data_;
  int64_t n_bytes_;
};

/** mmap and cudaHostRegister: a caching host allocator would round sizes up. */
class PinnedReservation final : public Reservation {
 public:
  explicit PinnedReservation(int64_t n_bytes) : n_bytes_(round_up(n_bytes, 2 * kMiB)) {
    if (n_bytes == 0) return;
    void* p = mmap(nullptr, static_cast<size_t>(n_bytes_), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
      throw Error(
          Fault::does_not_fit, "device.reserve",
          fmt::format("no {} of host memory: {}", format_bytes(n_bytes), std::strerror(errno)),
          "lower host_memory or the model's size; see `ferry plan`");
    data_ = static_cast<std::byte*>(p);
    madvise(p, static_cast<size_t>(n_bytes_), MADV_HUGEPAGE);
    touch();
    if (cudaHostRegister(p, static_cast<size_t>(n_bytes_), cudaHostRegisterPortable) !=
        cudaSuccess) {
      cudaGetLastError();
      munmap(data_, static_cast<size_t>(n_bytes_));
      throw Error(Fault::does_not_fit, "device.reserve",
                  fmt::format("the driver would not pin {} of host memory", format_bytes(n_bytes_)),
                  "raise the memlock limit (`ulimit -l unlimited`) or lower host_memory");
    }
  }
  ~PinnedReservation() override {
    if (!data_) return;
    cudaHostUnregister(data_);
    munmap(data_, static_cast<size_t>(n_bytes_));
  }
  PinnedReservation(const PinnedReservation&) = delete;
  PinnedReservation& operator=(const PinnedReservation&) = delete;
  std::byte* data() override { return data_; }
  int64_t n_bytes() const override { return n_bytes_; }

 private:
  /** Page faults cost more than pinning; several threads take them. */
  void touch() {
    const auto n_threads =
        static_cast<int64_t>(std::max(1u, std::min(16u, std::thread::hardware_concurrency())));
    std::vector<std::jthread> threads;
    for (int64_t t = 0; t < n_threads; ++t)
      threads.emplace_back([this, t, n_threads] {
        for (int64_t at = t * 2 * kMiB; at < n_bytes_; at += n_threads * 2 * kMiB)
          std::memset(data_ + at, 0, static_cast<size_t>(std::min(2 * kMiB, n_bytes_ - at)));
      });
  }

  std::byte* data_ = nullptr;
  int64_t n_bytes_;
};

}  // namespace

void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(Fault::machine, "cuda", fmt::format("{}: {}", call, cudaGetErrorString(status)),
              "see `ferry doctor`");
}

std::unique_ptr<Reservation> reserve_gpu(int64_t n_bytes) {
  return std::make_unique<GpuReservation>(n_bytes);
}

std::unique_ptr<Reservation> reserve_pinned(int64_t n_bytes) {
  return std::make_unique<PinnedReservation>(n_bytes);
}

}  // namespace ferry
