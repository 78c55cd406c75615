// The CUDA device: three streams of the step and three host threads, for updates, for decisions
// and, with a stream of its own, for checkpoints. GPU queues wait for host work through stream
// memory operations on pinned flags, so that the submitting thread never blocks; a host thread
// waits for GPU work on events, for the other thread on its flags.

#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "offload/cuda_memory.h"
#include "offload/device.h"
#include "offload/gpu_support.h"
#include "offload/host_queue.h"
#include "simd/cuda_kernels.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

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

class CudaMath final : public DeviceMath {
 public:
  explicit CudaMath(cudaStream_t stream)
      : stream_(stream),
        tensor_sums_(allocate_gpu<double>(kTensors_max)),
        chunk_sums_(allocate_gpu<double>(kChunks_max)) {}
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
    ranges_.clear();
    int64_t n_chunks = 0;
    for (const TensorExtent& t : tensors) {
      ranges_.push_back({t.offset, t.n_elements});
      n_chunks += simd::norm_chunks(t.n_elements);
    }
    const auto n = static_cast<int64_t>(ranges_.size());
    FERRY_CHECK(n <= kTensors_max && n_chunks <= kChunks_max, "a block of {} tensors, {} chunks", n,
                n_chunks);
    simd::cuda::square_sums(g, type, ranges_.data(), n, tensor_sums_.get(), chunk_sums_.get(),
                            stream_);
    simd::cuda::sum_in_order(tensor_sums_.get(), n, total, stream_);
  }

 private:
  static constexpr int64_t kTensors_max = 4096;
  static constexpr int64_t kChunks_max = 1 << 19;  ///< of a block: 2 G elements

  cudaStream_t stream_;
  GpuArray<double> tensor_sums_;
  GpuArray<double> chunk_sums_;
  std::vector<simd::cuda::TensorRange> ranges_;
};

/** One word of pinned memory for each event that host work records: others wait for it to reach a
 * generation. */
class HostFlags {
 public:
  HostFlags() : flags_(allocate_pinned<uint32_t>(kFlags_max)) {
    FERRY_CUDA(cudaHostGetDevicePointer(&on_gpu_, flags_.get(), 0));
  }
  int make() {
    FERRY_CHECK(n_ < kFlags_max, "{} events of the host queue", n_);
    return n_++;
  }
  /** Never lowers a flag: release() may come between. */
  void raise(int flag, uint32_t generation) {
    auto word = at(flag);
    for (uint32_t seen = word.load();
         seen < generation && !word.compare_exchange_weak(seen, generation);) {
    }
    word.notify_all();
  }
  void await(int flag, uint32_t generation) const {
    auto word = at(flag);
    for (uint32_t seen = word.load(); seen < generation; seen = word.load())
      word.wait(seen);
  }
  uint32_t generation(int flag) const { return at(flag).load(std::memory_order_acquire); }
  CUdeviceptr address(int flag) const {
    return reinterpret_cast<CUdeviceptr>(on_gpu_) +
           static_cast<CUdeviceptr>(flag) * sizeof(uint32_t);
  }
  /** After a failure: whatever waits for host work, now or later, goes on. */
  void release() {
    for (int flag = 0; flag < kFlags_max; ++flag) {
      at(flag).store(kReleased, std::memory_order_release);
      at(flag).notify_all();
    }
  }

 private:
  static constexpr int kFlags_max = 1 << 16;
  /** Beyond every generation. The GPU compares the sign of a difference, so not UINT32_MAX. */
  static constexpr uint32_t kReleased = INT32_MAX;
  std::atomic_ref<uint32_t> at(int flag) const {
    return std::atomic_ref<uint32_t>(flags_.get()[flag]);
  }

  PinnedArray<uint32_t> flags_;
  void* on_gpu_ = nullptr;
  int n_ = 0;
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
  }

  ~CudaDevice() override {
    flags_.release();
    drain_host();
    cudaDeviceSynchronize();
  }

  std::string name() const override { return name_; }
  bool is_cuda() const override { return true; }
  std::unique_ptr<Reservation> reserve(Place place, int64_t n_bytes) override {
    if (place == Place::gpu) return reserve_gpu(n_bytes);
    return reserve_pinned(n_bytes);
  }

  EventId make_event() override {
    Event event{.cuda = std::make_shared<CudaEvent>()};
    events_.push_back(std::move(event));
    return static_cast<EventId>(events_.size()) - 1;
  }

  void submit(QueueId queue, std::function<void()> work) override {
    if (is_of_host(queue))
      thread_of(queue).push([this, work = std::move(work)] { fence_.guard(work); });
    else
      fence_.guard(work);
  }

  void record(QueueId queue, EventId id) override {
    Event& event = events_[static_cast<size_t>(id)];
    event.queue = queue;
    ++event.generation;
    if (!is_of_host(queue))
      return fence_.guard([&] {
        // The host queue may still have to wait for the last record: that one keeps its event.
        if (event.cuda.use_count() > 1) event.cuda = std::make_shared<CudaEvent>();
        FERRY_CUDA(cudaEventRecord(event.cuda->get(), stream(queue)));
      });
    if (event.flag < 0) event.flag = flags_.make();
    thread_of(queue).push([this, flag = event.flag, generation = event.generation] {
      flags_.raise(flag, generation);
      if (fence_.failed()) flags_.release();
    });
  }

  void wait(QueueId queue, EventId id) override {
    const Event& event = events_[static_cast<size_t>(id)];
    if (event.generation == 0 || event.queue == queue) return;
    if (is_of_host(queue) && is_of_host(event.queue))
      return thread_of(queue).push([this, flag = event.flag, generation = event.generation] {
        flags_.await(flag, generation);
      });
    if (is_of_host(queue))
      return thread_of(queue).push([this, e = event.cuda] {
        fence_.guard([&] { FERRY_CUDA(cudaEventSynchronize(e->get())); });
      });
    fence_.guard([&] {
      if (!is_of_host(event.queue))
        return FERRY_CUDA(cudaStreamWaitEvent(stream(queue), event.cuda->get(), 0));
      CUresult status =
          stream_wait_value_(reinterpret_cast<CUstream>(stream(queue)), flags_.address(event.flag),
                             event.generation, CU_STREAM_WAIT_VALUE_GEQ);
      if (status != CUDA_SUCCESS)
        throw Error(Fault::machine, "cuda",
                    fmt::format("cuStreamWaitValue32: error {}", static_cast<int>(status)),
                    "update the NVIDIA driver");
    });
  }

  bool wait_host(EventId id, std::chrono::milliseconds patience) override {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!happened(id)) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(20us);  // once a step: neither a core nor the step feels it
    }
    finish();
    return true;
  }

  bool happened(EventId id) override {
    const Event& event = events_[static_cast<size_t>(id)];
    if (event.generation == 0) return true;
    if (is_of_host(event.queue)) return flags_.generation(event.flag) >= event.generation;
    const cudaError_t status = cudaEventQuery(event.cuda->get());
    if (status == cudaErrorNotReady) return false;
    fence_.guard([&] { check_cuda(status, "cudaEventQuery"); });
    return true;
  }

  void drain() override {
    drain_host();
    fence_.guard([] { FERRY_CUDA(cudaDeviceSynchronize()); });
    finish();
  }

  void fail(std::exception_ptr failure) override {
    fence_.fail(std::move(failure));
    flags_.release();
  }
  void copy(QueueId queue, void* dst, const void* src, int64_t n_bytes) override {
    if (n_bytes == 0) return;
    const auto kind = queue == QueueId::save  ? cudaMemcpyDefault
                      : queue == QueueId::h2d ? cudaMemcpyHostToDevice
                                              : cudaMemcpyDeviceToHost;
    FERRY_CUDA(cudaMemcpyAsync(dst, src, static_cast<size_t>(n_bytes), kind, stream(queue)));
  }
  void await_copies() override { FERRY_CUDA(cudaStreamSynchronize(save_stream_.get())); }
  StampId stamp(QueueId queue) override {
    Stamp& stamp = stamps_.emplace_back();
    if (is_of_host(queue))
      thread_of(queue).push([&stamp] { stamp.host_s = host_seconds(); });
    else
      fence_.guard([&] {
        if (!clock_) start_clock();
        stamp.cuda = std::make_unique<CudaEvent>(cudaEventDefault);
        FERRY_CUDA(cudaEventRecord(stamp.cuda->get(), stream(queue)));
      });
    return stamps_.size() - 1;
  }
  double seconds_of(StampId id) override {
    const Stamp& stamp = stamps_.at(id);
    if (!stamp.cuda) return stamp.host_s;
    float ms = 0;
    if (cudaEventElapsedTime(&ms, clock_->get(), stamp.cuda->get()) == cudaSuccess)
      return clock_start_s_ + 1e-3 * static_cast<double>(ms);
    cudaGetLastError();
    return stamp.host_s;
  }
  void forget_stamps() override {
    stamps_.clear();
    clock_.reset();
  }
  DeviceMath& math() override { return math_; }
  void poison(void*, int64_t) override {}
  void* compute_stream() override { return streams_[0].get(); }

 private:
  struct Event {
    std::shared_ptr<CudaEvent> cuda;
    uint32_t generation = 0;
    int flag = -1;                     ///< from its first record on a host thread
    QueueId queue = QueueId::compute;  ///< where it was recorded last
  };

  struct Stamp {
    std::unique_ptr<CudaEvent> cuda;  ///< of a stream
    double host_s = std::numeric_limits<double>::quiet_NaN();
  };

  static double host_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  /** An event that the host saw happen: GPU times are counted from it. */
  void start_clock() {
    clock_ = std::make_unique<CudaEvent>(cudaEventDefault);
    FERRY_CUDA(cudaEventRecord(clock_->get(), save_stream_.get()));
    FERRY_CUDA(cudaEventSynchronize(clock_->get()));
    clock_start_s_ = host_seconds();
  }

  static bool is_of_host(QueueId queue) {
    return queue == QueueId::host || queue == QueueId::decision || queue == QueueId::save;
  }
  HostQueue& thread_of(QueueId queue) {
    return queue == QueueId::save ? save_ : queue == QueueId::decision ? decision_ : host_;
  }
  void drain_host() {
    host_.drain();
    decision_.drain();
    save_.drain();
  }
  cudaStream_t stream(QueueId queue) const {
    return (queue == QueueId::save ? save_stream_ : streams_[static_cast<size_t>(queue)]).get();
  }
  /** After a failure: what is queued runs out, into memory nobody reads any more. */
  void finish() {
    if (!fence_.failed()) return;
    flags_.release();
    drain_host();
    cudaDeviceSynchronize();
    fence_.rethrow();
  }

  std::string name_;
  StepFence fence_;
  Stream streams_[3];  // compute, h2d, d2h
  Stream save_stream_;
  CudaMath math_;
  std::vector<Event> events_;
  std::deque<Stamp> stamps_;
  std::unique_ptr<CudaEvent> clock_;
  double clock_start_s_ = 0;
  HostFlags flags_;
  decltype(&cuStreamWaitValue32) stream_wait_value_ = nullptr;
  HostQueue host_, decision_, save_;  // last: their threads end before what they use
};

}  // namespace

CudaProbe probe_cuda() {
  CudaProbe probe;
  GpuFacts facts;
  // 0 without a driver; the other calls would call that too old.
  cudaDriverGetVersion(&facts.driver_cuda_version);
  int n = 0;
  cudaDeviceProp properties{};
  cudaError_t status = cudaGetDeviceCount(&n);
  if (status == cudaSuccess && n > 0) status = cudaGetDeviceProperties(&properties, 0);
  if (status == cudaSuccess && n > 0) {
    facts.name = probe.gpu_name = properties.name;
    facts.compute_capability = properties.major * 10 + properties.minor;
  }
  // Before anything runs there: what is missing would show as a kernel that does not.
  if (auto refusal = refusal_of(facts, gpu_code_of_build())) {
    cudaGetLastError();
    probe.why_not = refusal->what;
    probe.cure = refusal->cure;
    probe.has_gpu = true;
    return probe;
  }
  size_t free = 0, total = 0;
  if (status == cudaSuccess && n > 0) status = cudaMemGetInfo(&free, &total);
  if (status != cudaSuccess || n == 0) {
    probe.why_not = facts.driver_cuda_version == 0 ? "there is no NVIDIA driver"
                    : status == cudaSuccess        ? "no NVIDIA GPU"
                                                   : cudaGetErrorString(status);
    probe.cure = "use device = cpu, or see `ferry doctor`";
    probe.has_gpu = n > 0;
    if (status == cudaErrorMemoryAllocation) {
      probe.why_not = fmt::format("other programs have taken all memory of the {}", facts.name);
      probe.cure = "end them, `nvidia-smi` lists them, or use device = cpu";
    }
    cudaGetLastError();
    return probe;
  }
  probe.usable = true;
  probe.compute_capability = facts.compute_capability;
  probe.free_bytes = static_cast<int64_t>(free);
  probe.total_bytes = static_cast<int64_t>(total);
  return probe;
}

std::unique_ptr<Device> make_cuda_device() {
  CudaProbe probe = probe_cuda();
  if (!probe.usable) throw Error(Fault::machine, "cuda", probe.why_not, probe.cure);
  return std::make_unique<CudaDevice>();
}

int64_t cuda_driver_used_bytes() {
  size_t free = 0, total = 0;
  FERRY_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(total - free);
}

}  // namespace ferry
