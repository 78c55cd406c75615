// The CUDA device: three streams of the step and three host threads, for updates, for decisions
// and, with a stream of its own, for checkpoints. A stream waits for host work on a pinned flag: in
// the driver, so that the thread that steps submits far ahead; where the driver cannot, each
// stream has a thread that waits and submits, and so where a ring of pinned slots stands between
// the GPU and memory that is not pinned. Host work waits for the GPU's on events, for other host
// work on flags.

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "offload/device/cuda/cuda_math.h"
#include "offload/device/cuda/cuda_memory.h"
#include "offload/device/cuda/cuda_stream.h"
#include "offload/device/cuda/host_flags.h"
#include "offload/device/device.h"
#include "offload/device/host/host_queue.h"
#include "offload/device/host/pinning.h"
#include "offload/device/host/worker_pool.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/threads.h"

namespace ferry {
namespace {

/** FERRY_HOST_WAITS. */
HostWaits waits_asked_for() {
  const char* text = std::getenv("FERRY_HOST_WAITS");
  const std::string_view word = text ? text : "";
  if (word.empty()) return HostWaits::probed;
  if (word == "driver") return HostWaits::driver;
  if (word == "threads") return HostWaits::threads;
  throw Error(Fault::usage, "cuda",
              "FERRY_HOST_WAITS is '" + std::string(word) + "', expected driver or threads",
              "unset FERRY_HOST_WAITS");
}

/** Copies between the slots of a ring and the GPU, on the stream of a transfer queue. */
class StreamLink final : public RingLink {
 public:
  StreamLink(cudaStream_t stream, cudaMemcpyKind kind) : stream_(stream), kind_(kind) {}
  void start(int slot, void* to, const void* from, int64_t n_bytes) override {
    FERRY_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(n_bytes), kind_, stream_));
    FERRY_CUDA(cudaEventRecord(copied_[static_cast<size_t>(slot)].get(), stream_));
  }
  void await(int slot) override {
    FERRY_CUDA(cudaEventSynchronize(copied_[static_cast<size_t>(slot)].get()));
  }

 private:
  cudaStream_t stream_;
  cudaMemcpyKind kind_;
  std::array<CudaEvent, kRingSlots> copied_;
};

class CudaDevice final : public Device {
 public:
  /** The GPU is the thread's current one. */
  CudaDevice(HostWaits waits, int64_t pinned_bytes_max, int index)
      : index_(index),
        math_(streams_[0].get()),
        pinning_(make_cuda_pinning(pinned_bytes_max)),
        flags_(waits) {
    cudaDeviceProp properties{};
    FERRY_CUDA(cudaGetDeviceProperties(&properties, index));
    name_ = properties.name;
    for (HostQueue* thread : {&host_, &decision_, &save_, &nvme_read_, &nvme_write_})
      enter_gpu(*thread);
    if (flags_.gpu_can_wait()) return;
    if (waits == HostWaits::probed)
      log_line(
          "this driver has no stream memory operations: threads wait for the CPU's work instead");
    start_submitters();
  }

  ~CudaDevice() override {
    flags_.release();
    drain_threads();
    const OnDevice on_device(index_);
    cudaDeviceSynchronize();
  }

  std::string name() const override { return name_; }
  bool is_cuda() const override { return true; }
  int index() const override { return index_; }
  std::unique_ptr<Reservation> reserve(Place place,
                                       int64_t n_bytes,
                                       const FirstTouch& touch,
                                       const ByteRange& copied) override {
    const OnDevice on_device(index_);
    if (place == Place::device) return reserve_gpu(n_bytes);
    std::unique_ptr<Reservation> reserved = reserve_host(n_bytes, touch, copied, pinning_);
    if (pinning_->has_ring() && !to_gpu_) start_ring();
    return reserved;
  }
  PinnedBytes pinned_bytes() const override { return pinning_->bytes(); }

  EventId make_event(QueueId queue) override {
    const OnDevice on_device(index_);
    events_.push_back({.queue = queue});
    if (is_of_gpu(queue)) events_.back().on_gpu = std::make_shared<GpuRecord>();
    return static_cast<EventId>(events_.size()) - 1;
  }

  void submit(QueueId queue, std::function<void()> work) override {
    enqueue(queue, [this, work = std::move(work)] { fence_.guard(work); });
  }

  void record(EventId id) override {
    Event& event = events_[id];
    const QueueId queue = event.queue;
    ++event.generation;
    if (!is_of_gpu(queue)) {
      if (event.flag < 0) event.flag = flags_.make();
      return enqueue(queue, [this, flag = event.flag, generation = event.generation] {
        flags_.raise(flag, generation);
        if (fence_.failed()) flags_.release();
      });
    }
    const OnDevice on_device(index_);
    // A thread may still have to wait for the last record: that one keeps its event.
    if (event.on_gpu.use_count() > 1) event.on_gpu = std::make_shared<GpuRecord>();
    event.on_gpu->has_stream_got_it = false;
    enqueue(queue, [this, queue, record = event.on_gpu] {
      fence_.guard([&] { FERRY_CUDA(cudaEventRecord(record->event.get(), stream(queue))); });
      record->has_stream_got_it = true;
      record->has_stream_got_it.notify_all();
    });
  }

  void wait(QueueId queue, EventId id) override {
    const Event& event = events_[id];
    if (event.generation == 0 || event.queue == queue) return;
    if (is_of_gpu(event.queue))
      return enqueue(queue, [this, queue, record = event.on_gpu] {
        record->has_stream_got_it.wait(false);
        fence_.guard([&] {
          if (!is_of_gpu(queue))
            FERRY_CUDA(cudaEventSynchronize(record->event.get()));
          else
            FERRY_CUDA(cudaStreamWaitEvent(stream(queue), record->event.get(), 0));
        });
      });
    enqueue(queue, [this, queue, flag = event.flag, generation = event.generation] {
      if (thread_of(queue)) return flags_.await(flag, generation);
      fence_.guard([&] { flags_.await_on(stream(queue), flag, generation); });
    });
  }

  bool wait_host(EventId id, std::chrono::milliseconds patience) override {
    return await([&] { return happened(id); }, patience);
  }

  bool wait_turn(EventId id, std::chrono::milliseconds patience) override {
    const Event& event = events_[id];
    return await([&] { return event.on_gpu->has_stream_got_it.load(); }, patience);
  }

  bool happened(EventId id) override {
    const Event& event = events_[id];
    if (event.generation == 0) return true;
    if (!is_of_gpu(event.queue)) return flags_.generation(event.flag) >= event.generation;
    if (!event.on_gpu->has_stream_got_it) return false;
    const cudaError_t status = cudaEventQuery(event.on_gpu->event.get());
    if (status == cudaErrorNotReady) return false;
    fence_.guard([&] { check_cuda(status, "cudaEventQuery"); });
    return true;
  }

  void drain() override {
    drain_threads();
    const OnDevice on_device(index_);
    fence_.guard([] { FERRY_CUDA(cudaDeviceSynchronize()); });
    finish();
  }

  void fail(std::exception_ptr failure) override {
    fence_.fail(std::move(failure));
    flags_.release();
  }
  void copy(QueueId queue, void* dst, const void* src, int64_t n_bytes) override {
    const auto kind = queue == QueueId::save         ? cudaMemcpyDefault
                      : queue == QueueId::collective ? cudaMemcpyDeviceToDevice
                      : queue == QueueId::h2d        ? cudaMemcpyHostToDevice
                                                     : cudaMemcpyDeviceToHost;
    // The driver takes no copy with an end that is pinned in part, or by several calls.
    pinning_->for_parts(
        queue, dst, src, n_bytes, [&](void* to, const void* from, int64_t n, bool uses_ring) {
          if (uses_ring)
            return queue == QueueId::h2d ? to_gpu_->to_gpu(to, from, n)
                                         : to_host_->to_host(to, from, n);
          FERRY_CUDA(cudaMemcpyAsync(to, from, static_cast<size_t>(n), kind, stream(queue)));
        });
  }
  void await_copies() override { FERRY_CUDA(cudaStreamSynchronize(save_stream_.get())); }
  StampId stamp(QueueId queue) override {
    const OnDevice on_device(index_);
    Stamp& stamp = stamps_.emplace_back();
    if (!is_of_gpu(queue)) {
      enqueue(queue, [&stamp] { stamp.host_s = host_seconds(); });
      return stamps_.size() - 1;
    }
    fence_.guard([&] {
      if (!clock_) start_clock();
      stamp.cuda = std::make_unique<CudaEvent>(cudaEventDefault);
    });
    submit(queue, [this, queue, &stamp] {
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
  void* collective_stream() override { return stream(QueueId::collective); }

 private:
  struct GpuRecord {
    CudaEvent event;
    /** True once the stream has the event: work that waits for an event that its stream has not got
     * would not wait at all. */
    std::atomic<bool> has_stream_got_it{true};
  };
  struct Event {
    QueueId queue{};
    std::shared_ptr<GpuRecord> on_gpu;  ///< of a queue of the GPU
    uint32_t generation = 0;
    int flag = -1;  ///< of a host thread, from the first record on
  };

  struct Stamp {
    std::unique_ptr<CudaEvent> cuda;  ///< the event of a stream
    double host_s = std::numeric_limits<double>::quiet_NaN();
  };

  void start_submitters() {
    for (auto& submitter : submitters_) {
      if (submitter) continue;
      submitter = std::make_unique<HostQueue>();
      enter_gpu(*submitter);
    }
  }
  void enter_gpu(HostQueue& thread) {
    thread.push([this] { fence_.guard([&] { FERRY_CUDA(cudaSetDevice(index_)); }); });
  }
  /** A copy through the ring is the host's work, in a thread that first waits for earlier work. All
   * streams have such a thread then: the thread that steps would else wait for one of them where it
   * makes a stream wait for the copy. Called before any work. */
  void start_ring() {
    const int n_threads = ring_threads(n_usable_threads());
    const auto make = [&](int direction, QueueId queue, cudaMemcpyKind kind) {
      std::unique_ptr<WorkerPool>& pool = ring_pools_[direction];
      pool = make_thread_pool(n_threads);
      return std::make_unique<CopyRing>(pinning_->ring_slots(direction),
                                        pinning_->ring_slot_bytes(),
                                        std::make_unique<StreamLink>(stream(queue), kind), *pool);
    };
    to_host_ = make(1, QueueId::d2h, cudaMemcpyDeviceToHost);
    to_gpu_ = make(0, QueueId::h2d, cudaMemcpyHostToDevice);
    start_submitters();
  }

  /** Blocks the caller until it is so; then true, or the first failure. False: it lasts longer. */
  template <class Condition>
  bool await(Condition is_so, std::chrono::milliseconds patience) {
    using namespace std::chrono_literals;
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!is_so()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(20us);  // once a step: neither a core nor the step feels it
    }
    finish();
    return true;
  }

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

  /** Null: the caller submits, to a stream that waits by itself. */
  HostQueue* thread_of(QueueId queue) {
    switch (queue) {
      case QueueId::save:
        return &save_;
      case QueueId::decision:
        return &decision_;
      case QueueId::host:
        return &host_;
      case QueueId::nvme_read:
        return &nvme_read_;
      case QueueId::nvme_write:
        return &nvme_write_;
      case QueueId::compute:
      case QueueId::h2d:
      case QueueId::d2h:
      case QueueId::collective:
        return submitters_[static_cast<size_t>(queue)].get();
    }
    return nullptr;
  }
  template <class Work>
  void enqueue(QueueId queue, Work&& work) {
    if (HostQueue* thread = thread_of(queue)) return thread->push(std::forward<Work>(work));
    const OnDevice on_device(index_);
    work();
  }
  void drain_threads() {
    for (auto& submitter : submitters_)
      if (submitter) submitter->drain();
    host_.drain();
    nvme_read_.drain();
    nvme_write_.drain();
    decision_.drain();
    save_.drain();
  }
  cudaStream_t stream(QueueId queue) const {
    return (queue == QueueId::save ? save_stream_ : streams_[static_cast<size_t>(queue)]).get();
  }
  /** Lets queued work run out after a failure, into memory that nobody reads any more. */
  void finish() {
    if (!fence_.failed()) return;
    flags_.release();
    drain_threads();
    const OnDevice on_device(index_);
    cudaDeviceSynchronize();
    fence_.rethrow();
  }

  int index_;
  std::string name_;
  StepFence fence_;
  Stream streams_[4];  // compute, h2d, d2h, collective
  Stream save_stream_;
  CudaMath math_;
  std::shared_ptr<Pinning> pinning_;
  std::unique_ptr<WorkerPool> ring_pools_[2];
  std::unique_ptr<CopyRing> to_gpu_, to_host_;  ///< null where all is pinned
  std::vector<Event> events_;
  std::deque<Stamp> stamps_;
  std::unique_ptr<CudaEvent> clock_;
  double clock_start_s_ = 0;
  HostFlags flags_;
  // Last: their threads end before what they use.
  std::unique_ptr<HostQueue> submitters_[4];  ///< threads of streams_, where these cannot wait
  HostQueue host_, decision_, save_, nvme_read_, nvme_write_;
};

}  // namespace

std::unique_ptr<Device> make_cuda_device(HostWaits waits, int64_t pinned_bytes_max, int index) {
  if (waits == HostWaits::probed) waits = waits_asked_for();
  CudaProbe probe = probe_cuda(index);
  if (!probe.usable) throw Error(Fault::machine, "cuda", probe.why_not, probe.cure);
  const OnDevice on_device(index);
  return std::make_unique<CudaDevice>(waits, pinned_bytes_max, index);
}

}  // namespace ferry
