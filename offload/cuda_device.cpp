// The CUDA device: three streams and a host thread. GPU queues wait for host work through stream
// memory operations on pinned flags, so that the submitting thread never blocks; the host thread
// waits for GPU work on events.

#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "offload/device.h"
#include "offload/host_queue.h"
#include "simd/cuda_kernels.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(Fault::machine, "cuda", fmt::format("{}: {}", call, cudaGetErrorString(status)),
              "see `ferry doctor`");
}
#define FERRY_CUDA(call) check((call), #call)

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
    data_ = static_cast<std::byte*>(p);
    FERRY_CUDA(cudaMemset(p, 0, static_cast<size_t>(n_bytes)));
  }
  ~GpuReservation() override { cudaFree(data_); }
  GpuReservation(const GpuReservation&) = delete;
  GpuReservation& operator=(const GpuReservation&) = delete;
  std::byte* data() override { return data_; }
  int64_t n_bytes() const override { return n_bytes_; }

 private:
  std::byte* data_ = nullptr;
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

class CudaMath final : public DeviceMath {
 public:
  explicit CudaMath(cudaStream_t stream) : stream_(stream) {
    FERRY_CUDA(
        cudaMalloc(&scratch_, kTensors_max * sizeof(double) + static_cast<size_t>(kScratch_bytes)));
  }
  ~CudaMath() override { cudaFree(scratch_); }
  void adamw(std::span<const simd::AdamwArgs> tensors) override {
    for (const simd::AdamwArgs& args : tensors)
      simd::cuda::adamw(args, stream_);
  }
  void accumulate(float* sum, const void* g, DType type, int64_t n, bool first) override {
    if (first)
      simd::cuda::accumulate_first(sum, g, type, n, stream_);
    else
      simd::cuda::accumulate(sum, g, type, n, stream_);
  }
  void square_sum(const void* g,
                  DType type,
                  std::span<const TensorExtent> tensors,
                  double* total) override {
    // scratch: one double a tensor, then the chunk sums of the tensor at work
    FERRY_CHECK(tensors.size() <= kTensors_max, "{} tensors in a block", tensors.size());
    auto* sums = static_cast<double*>(scratch_);
    for (size_t t = 0; t < tensors.size(); ++t) {
      const TensorExtent& tensor = tensors[t];
      FERRY_CHECK(simd::cuda::square_sum_scratch_bytes(tensor.n_elements) <= kScratch_bytes,
                  "{} elements", tensor.n_elements);
      const auto* at =
          static_cast<const std::byte*>(g) + tensor.offset * static_cast<int64_t>(size_of(type));
      simd::cuda::square_sum(at, type, tensor.n_elements, sums + t, sums + kTensors_max, stream_);
    }
    simd::cuda::sum_in_order(sums, static_cast<int64_t>(tensors.size()), total, stream_);
  }

 private:
  static constexpr int64_t kScratch_bytes = 4 * kMiB;  // chunk sums of a tensor of 2 G elements
  static constexpr size_t kTensors_max = 4096;
  cudaStream_t stream_;
  void* scratch_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  CudaDevice() : math_(streams_[0].get()) {
    cudaDeviceProp properties{};
    FERRY_CUDA(cudaGetDeviceProperties(&properties, 0));
    name_ = properties.name;
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
    FERRY_CUDA(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &entry, 12000,
                                                cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess || !entry)
      throw Error(Fault::machine, "cuda", "the driver has no stream memory operations",
                  "update the NVIDIA driver");
    stream_wait_value_ = reinterpret_cast<decltype(&cuStreamWaitValue32)>(entry);
    FERRY_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&flags_), kEvents_max * sizeof(uint32_t),
                             cudaHostAllocMapped));
    std::memset(flags_, 0, kEvents_max * sizeof(uint32_t));
    FERRY_CUDA(cudaHostGetDevicePointer(reinterpret_cast<void**>(&flags_on_gpu_), flags_, 0));
  }

  ~CudaDevice() override {
    release_flags();
    host_.drain();
    cudaDeviceSynchronize();
    for (Event& event : events_)
      cudaEventDestroy(event.cuda);
    cudaFreeHost(flags_);
  }

  std::string name() const override { return name_; }
  bool is_cuda() const override { return true; }
  std::unique_ptr<Reservation> reserve(Place place, int64_t n_bytes) override {
    if (place == Place::gpu) return std::make_unique<GpuReservation>(n_bytes);
    return std::make_unique<PinnedReservation>(n_bytes);
  }

  EventId make_event() override {
    FERRY_CHECK(events_.size() < kEvents_max, "{} events", events_.size());
    Event event;
    FERRY_CUDA(cudaEventCreateWithFlags(&event.cuda, cudaEventDisableTiming));
    events_.push_back(event);
    return static_cast<EventId>(events_.size()) - 1;
  }

  void submit(QueueId queue, std::function<void()> work) override {
    if (queue == QueueId::host)
      host_.push([this, work = std::move(work)] { fence_.guard(work); });
    else
      fence_.guard(work);
  }

  void record(QueueId queue, EventId id) override {
    Event& event = events_[static_cast<size_t>(id)];
    event.on_host = queue == QueueId::host;
    ++event.generation;
    if (event.on_host)
      host_.push([this, id, value = event.generation] {
        std::atomic_ref<uint32_t>(flags_[id]).store(value, std::memory_order_release);
        std::atomic_ref<uint32_t>(flags_[id]).notify_all();
        if (fence_.failed()) release_flags();
      });
    else
      FERRY_CUDA(cudaEventRecord(event.cuda, stream(queue)));
  }

  void wait(QueueId queue, EventId id) override {
    const Event& event = events_[static_cast<size_t>(id)];
    if (event.generation == 0) return;
    if (queue == QueueId::host) {
      if (!event.on_host)
        host_.push(
            [this, e = event.cuda] { fence_.guard([&] { FERRY_CUDA(cudaEventSynchronize(e)); }); });
    } else if (event.on_host) {
      CUresult status = stream_wait_value_(reinterpret_cast<CUstream>(stream(queue)),
                                           reinterpret_cast<CUdeviceptr>(flags_on_gpu_ + id),
                                           event.generation, CU_STREAM_WAIT_VALUE_GEQ);
      if (status != CUDA_SUCCESS)
        throw Error(Fault::machine, "cuda",
                    fmt::format("cuStreamWaitValue32: error {}", static_cast<int>(status)),
                    "update the NVIDIA driver");
    } else {
      FERRY_CUDA(cudaStreamWaitEvent(stream(queue), event.cuda, 0));
    }
  }

  void wait_host(EventId id) override {
    const Event& event = events_[static_cast<size_t>(id)];
    if (event.on_host) {
      std::atomic_ref<uint32_t> flag(flags_[id]);
      for (uint32_t seen; (seen = flag.load(std::memory_order_acquire)) < event.generation;)
        flag.wait(seen);
    } else if (event.generation > 0) {
      fence_.guard([&] { FERRY_CUDA(cudaEventSynchronize(event.cuda)); });
    }
    finish();
  }

  void drain() override {
    host_.drain();
    fence_.guard([] { FERRY_CUDA(cudaDeviceSynchronize()); });
    finish();
  }

  void copy(QueueId queue, void* dst, const void* src, int64_t n_bytes) override {
    auto kind = queue == QueueId::h2d ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    FERRY_CUDA(cudaMemcpyAsync(dst, src, static_cast<size_t>(n_bytes), kind, stream(queue)));
  }
  DeviceMath& math() override { return math_; }
  void poison(void*, int64_t) override {}
  void* compute_stream() override { return streams_[0].get(); }

 private:
  static constexpr size_t kEvents_max = 1 << 16;
  struct Event {
    cudaEvent_t cuda = nullptr;
    uint32_t generation = 0;
    bool on_host = false;
  };

  cudaStream_t stream(QueueId queue) const { return streams_[static_cast<size_t>(queue)].get(); }
  /** After a failure: lets every stream that waits for host work go on, into memory nobody reads
   * any more. */
  void release_flags() {
    for (size_t i = 0; i < kEvents_max; ++i)
      std::atomic_ref<uint32_t>(flags_[i]).store(UINT32_MAX, std::memory_order_release);
  }
  void finish() {
    if (!fence_.failed()) return;
    release_flags();
    host_.drain();
    cudaDeviceSynchronize();
    fence_.rethrow();
  }

  std::string name_;
  StepFence fence_;
  Stream streams_[3];
  CudaMath math_;
  std::vector<Event> events_;
  uint32_t* flags_ = nullptr;
  uint32_t* flags_on_gpu_ = nullptr;
  decltype(&cuStreamWaitValue32) stream_wait_value_ = nullptr;
  HostQueue host_;  // last: its thread ends before what it uses
};

}  // namespace

CudaProbe probe_cuda() {
  CudaProbe probe;
  int n = 0;
  cudaError_t status = cudaGetDeviceCount(&n);
  if (status != cudaSuccess || n == 0) {
    probe.why_not = status == cudaSuccess ? "no NVIDIA GPU" : cudaGetErrorString(status);
    cudaGetLastError();
    return probe;
  }
  cudaDeviceProp properties{};
  size_t free = 0, total = 0;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess ||
      cudaMemGetInfo(&free, &total) != cudaSuccess) {
    probe.why_not = cudaGetErrorString(cudaGetLastError());
    return probe;
  }
  probe.usable = true;
  probe.gpu_name = properties.name;
  probe.compute_capability = properties.major * 10 + properties.minor;
  probe.free_bytes = static_cast<int64_t>(free);
  probe.total_bytes = static_cast<int64_t>(total);
  return probe;
}

std::unique_ptr<Device> make_cuda_device() {
  CudaProbe probe = probe_cuda();
  if (!probe.usable)
    throw Error(Fault::machine, "cuda", probe.why_not, "use --device cpu, or see `ferry doctor`");
  return std::make_unique<CudaDevice>();
}

int64_t cuda_driver_used_bytes() {
  size_t free = 0, total = 0;
  FERRY_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total - free);
}

}  // namespace ferry
