// The simulated device: both places are host memory, queues are lists of closures. Serial mode
// trains on CPUs; the adversarial and threaded modes run the same lists in other orders, to find
// what only a real GPU's timing would.

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "offload/device/device.h"
#include "offload/device/host/cpu_math.h"
#include "offload/device/host/host_queue.h"
#include "offload/device/host/mapped_pages.h"
#include "offload/device/host/pinning.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

/** Refuses to pin more than so many bytes. */
class PlayedSystem final : public PinningSystem {
 public:
  explicit PlayedSystem(int64_t pinnable_bytes) : left_bytes_(pinnable_bytes) {}
  bool pin(std::byte*, int64_t n_bytes) override {
    if (n_bytes > left_bytes_) return false;
    left_bytes_ -= n_bytes;
    return true;
  }
  void unpin(std::byte*, int64_t n_bytes) override { left_bytes_ += n_bytes; }

 private:
  int64_t left_bytes_;
};

/** Copies when they are waited for: a slot that is used too early shows. */
class LateLink final : public RingLink {
 public:
  void start(int slot, void* to, const void* from, int64_t n_bytes) override {
    under_way_[static_cast<size_t>(slot)] = {to, from, n_bytes};
  }
  void await(int slot) override {
    auto& [to, from, n_bytes] = under_way_[static_cast<size_t>(slot)];
    std::memcpy(to, from, static_cast<size_t>(std::exchange(n_bytes, 0)));
  }

 private:
  struct Copy {
    void* to = this;
    const void* from = this;
    int64_t n_bytes = 0;
  };
  std::array<Copy, kRingSlots> under_way_;
};

/** Copies in a thread, as an engine does. */
class ThreadLink final : public RingLink {
 public:
  void start(int slot, void* to, const void* from, int64_t n_bytes) override {
    auto& under_way = under_way_[static_cast<size_t>(slot)];
    under_way = true;
    engine_.push([=, &under_way] {
      std::memcpy(to, from, static_cast<size_t>(n_bytes));
      under_way = false;
      under_way.notify_all();
    });
  }
  void await(int slot) override { under_way_[static_cast<size_t>(slot)].wait(true); }

 private:
  std::array<std::atomic<bool>, kRingSlots> under_way_{};
  HostQueue engine_;  // last: its thread ends before what it uses
};

class MappedReservation final : public Reservation {
 public:
  /** `in_use` counts the bytes of the reservations of the place, of at most `capacity_bytes`.
   * `pinning` has host memory in it until the end. */
  MappedReservation(Place place,
                    int64_t n_bytes,
                    std::shared_ptr<int64_t> in_use,
                    int64_t capacity_bytes,
                    std::shared_ptr<Pinning> pinning)
      : n_bytes_(n_bytes),
        in_use_(std::move(in_use)),
        capacity_bytes_(capacity_bytes),
        pinning_(std::move(pinning)),
        pages_(checked(n_bytes),
               std::string(place == Place::device ? "device memory" : "host memory"),
               "see `ferry plan`, lower train_batch_size or max_length") {
    *in_use_ += n_bytes_;
  }
  ~MappedReservation() override {
    if (pinning_) pinning_->remove(data());
    if (!is_released_) *in_use_ -= n_bytes_;
  }
  MappedReservation(const MappedReservation&) = delete;
  MappedReservation& operator=(const MappedReservation&) = delete;
  std::byte* data() override { return pages_.data(); }
  int64_t n_bytes() const override { return n_bytes_; }
  bool release() override {
    if (data()) madvise(data(), static_cast<size_t>(n_bytes_), MADV_DONTNEED);
    *in_use_ -= n_bytes_;
    is_released_ = true;
    return true;
  }
  void acquire() override {
    checked(n_bytes_);
    // A GPU's new memory is not zero either.
    if (data()) std::memset(data(), 0xff, static_cast<size_t>(n_bytes_));
    *in_use_ += n_bytes_;
    is_released_ = false;
  }

 private:
  /** The same number, if there is room for it. */
  int64_t checked(int64_t n_bytes) const {
    if (n_bytes > capacity_bytes_ - *in_use_)
      throw Error(Fault::does_not_fit, "device.reserve",
                  fmt::format("{} of GPU memory asked for, {} of {} in use", format_bytes(n_bytes),
                              format_bytes(*in_use_), format_bytes(capacity_bytes_)),
                  "see `ferry plan` for the largest tag and what would make it fit");
    return n_bytes;
  }

  int64_t n_bytes_;
  std::shared_ptr<int64_t> in_use_;
  int64_t capacity_bytes_;
  std::shared_ptr<Pinning> pinning_;
  MappedPages pages_;
  bool is_released_ = false;
};

/** The part that all three modes share: memory, copies, poison. */
class SimulatedDevice : public Device {
 public:
  SimulatedDevice(const SimulatedOptions& options, WorkerPool& pool)
      : options_(options),
        math_(pool),
        pool_(pool),
        pinning_(std::make_shared<Pinning>(std::make_unique<PlayedSystem>(options.pinnable_bytes),
                                           options.pinned_bytes_max,
                                           kTensorAlignment_bytes)) {}

  std::string name() const override { return "CPU"; }
  bool is_cuda() const override { return false; }
  std::unique_ptr<Reservation> reserve(Place place,
                                       int64_t n_bytes,
                                       const FirstTouch& touch,
                                       const ByteRange& copied) override {
    const bool is_host = place == Place::host;
    auto made = std::make_unique<MappedReservation>(
        place, n_bytes, in_use_[static_cast<size_t>(place)],
        is_host ? INT64_MAX : options_.gpu_capacity_bytes, is_host ? pinning_ : nullptr);
    // Pages are better found as they are needed where there is one node.
    if (touch && pool_.n_nodes() > 1 && n_bytes > 0) touch(made->data());
    if (is_host && n_bytes > 0) pinning_->add(made->data(), copied);
    if (pinning_->has_ring() && !to_gpu_) {
      to_gpu_ = make_ring(0);
      to_host_ = make_ring(1);
    }
    return made;
  }
  PinnedBytes pinned_bytes() const override { return pinning_->bytes(); }
  void fail(std::exception_ptr failure) override { fence_.fail(std::move(failure)); }
  void copy(QueueId queue, void* dst, const void* src, int64_t n_bytes) override {
    const auto copy_part = [&](void* to, const void* from, int64_t n, bool uses_ring) {
      if (!uses_ring) return static_cast<void>(std::memcpy(to, from, static_cast<size_t>(n)));
      if (queue == QueueId::d2h) return to_host_->to_host(to, from, n);
      to_gpu_->to_gpu(to, from, n);
      to_gpu_->finish();  // queues have no stream here: what was submitted has been done
    };
    if (to_gpu_)
      pinning_->for_parts(queue, dst, src, n_bytes, copy_part);
    else if (n_bytes > 0)
      std::memcpy(dst, src, static_cast<size_t>(n_bytes));
  }
  void await_copies() override {}
  void poison(void* slot, int64_t n_bytes) override {
    if (options_.poison)
      std::memset(slot, 0xff, static_cast<size_t>(n_bytes));  // NaN in every float type
  }
  DeviceMath& math() override { return math_; }
  void* compute_stream() override { return nullptr; }
  void* collective_stream() override { return nullptr; }
  StampId stamp(QueueId queue) override {
    StampId id;
    {
      std::lock_guard lock(stamping_);
      id = stamps_.size();
      stamps_.push_back(std::numeric_limits<double>::quiet_NaN());
    }
    submit(queue, [this, id] {
      const std::chrono::duration<double> now = std::chrono::steady_clock::now().time_since_epoch();
      std::lock_guard lock(stamping_);
      stamps_[id] = now.count();
    });
    return id;
  }
  double seconds_of(StampId stamp) override {
    std::lock_guard lock(stamping_);
    return stamps_.at(stamp);
  }
  void forget_stamps() override {
    std::lock_guard lock(stamping_);
    stamps_.clear();
  }

 protected:
  SimulatedOptions options_;
  StepFence fence_;

 private:
  std::unique_ptr<CopyRing> make_ring(int direction) {
    std::unique_ptr<RingLink> link;
    if (options_.mode == SimulatedMode::threads)
      link = std::make_unique<ThreadLink>();
    else
      link = std::make_unique<LateLink>();
    return std::make_unique<CopyRing>(pinning_->ring_slots(direction), pinning_->ring_slot_bytes(),
                                      std::move(link), pool_);
  }

  CpuMath math_;
  WorkerPool& pool_;
  std::shared_ptr<Pinning> pinning_;
  std::unique_ptr<CopyRing> to_gpu_, to_host_;
  std::mutex stamping_;
  std::vector<double> stamps_;
  std::shared_ptr<int64_t> in_use_[kPlaces] = {std::make_shared<int64_t>(0),
                                               std::make_shared<int64_t>(0)};
};

/** A step's queues run at once, in the caller; checkpoints leave on a thread of their own, so that
 * a training on a CPU does not stand still for the disk. */
class SerialDevice final : public SimulatedDevice {
 public:
  using SimulatedDevice::SimulatedDevice;
  EventId make_event(QueueId queue) override {
    std::lock_guard lock(mutex_);
    events_.push_back({.queue = queue});
    return static_cast<EventId>(events_.size()) - 1;
  }
  void submit(QueueId queue, std::function<void()> work) override {
    if (queue == QueueId::save)
      save_.push([this, work = std::move(work)] { fence_.guard(work); });
    else
      fence_.guard(work);
  }
  void record(EventId id) override {
    std::lock_guard lock(mutex_);
    Event& event = events_[id];
    const uint64_t generation = ++event.submitted;
    if (event.queue != QueueId::save) {
      event.happened = generation;
      return;
    }
    save_.push([this, id, generation] {
      std::lock_guard at_end(mutex_);
      events_[id].happened = generation;
      changed_.notify_all();
    });
  }
  void wait(QueueId queue, EventId id) override {
    if (queue == QueueId::save) return;  // work that was submitted elsewhere has run
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return has_happened(id); });
  }
  bool wait_host(EventId id, std::chrono::milliseconds patience) override {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, patience, [&] { return has_happened(id); })) return false;
    }
    if (fence_.failed()) drain();  // nothing of what failed goes on behind who catches it
    return true;
  }
  bool happened(EventId id) override {
    std::lock_guard lock(mutex_);
    return has_happened(id);
  }
  void drain() override {
    save_.drain();
    fence_.rethrow();
  }

 private:
  struct Event {
    QueueId queue{};
    uint64_t submitted = 0, happened = 0;
  };
  bool has_happened(EventId id) const {
    const Event& event = events_[id];
    return event.happened >= event.submitted;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
  HostQueue save_;  // last: its thread ends before what it uses
};

/** Queues of work, records and waits; the modes below differ in who takes the next item of which
 * queue. */
class QueuedDevice : public SimulatedDevice {
 public:
  using SimulatedDevice::SimulatedDevice;

  EventId make_event(QueueId queue) override {
    std::lock_guard lock(mutex_);
    events_.push_back({.queue = queue});
    return static_cast<EventId>(events_.size()) - 1;
  }
  bool happened(EventId event) override {
    std::lock_guard lock(mutex_);
    return happened(event, events_[event].submitted);
  }
  void submit(QueueId queue, std::function<void()> work) override {
    push(queue, {std::move(work), -1, 0, false});
  }
  void record(EventId id) override {
    uint64_t generation;
    QueueId queue;
    {
      std::lock_guard lock(mutex_);
      Event& event = events_[id];
      generation = ++event.submitted;
      queue = event.queue;
    }
    push(queue, {{}, id, generation, true});
  }
  void wait(QueueId queue, EventId event) override {
    uint64_t generation;
    {
      std::lock_guard lock(mutex_);
      generation = events_[event].submitted;
    }
    push(queue, {{}, event, generation, false});
  }

 protected:
  struct Item {
    std::function<void()> work;
    EventId event;
    uint64_t generation;
    bool records;
  };
  struct Event {
    QueueId queue{};
    uint64_t submitted = 0, happened = 0;
  };

  void push(QueueId queue, Item item) {
    std::lock_guard lock(mutex_);
    queues_[static_cast<size_t>(queue)].push_back(std::move(item));
    changed_.notify_all();
  }
  bool happened(EventId event, uint64_t generation) const {
    return events_[event].happened >= generation;
  }
  /** Head of the queue can run now. Caller holds the lock. */
  bool ready(size_t queue) const {
    if (queues_[queue].empty()) return false;
    const Item& item = queues_[queue].front();
    return item.work || item.records || happened(item.event, item.generation);
  }
  bool empty() const {
    for (const auto& q : queues_)
      if (!q.empty()) return false;
    return true;
  }
  /** Takes and runs the head of a ready queue; `lock` is released meanwhile. */
  void run_head(size_t queue, std::unique_lock<std::mutex>& lock) {
    Item item = std::move(queues_[queue].front());
    queues_[queue].pop_front();
    if (item.work) {
      ++running_;
      lock.unlock();
      fence_.guard(item.work);
      lock.lock();
      --running_;
    } else if (item.records) {
      events_[item.event].happened = item.generation;
    }
    changed_.notify_all();
  }
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> queues_[kQueues];
  std::deque<Event> events_;
  int running_ = 0;
};

class AdversarialDevice final : public QueuedDevice {
 public:
  AdversarialDevice(const SimulatedOptions& options, WorkerPool& pool)
      : QueuedDevice(options, pool), random_(options.seed), starved_(random_() % (2 * kQueues)) {}

  bool wait_host(EventId event, std::chrono::milliseconds) override {
    std::unique_lock lock(mutex_);
    const uint64_t generation = events_[event].submitted;
    while (!happened(event, generation))
      step(lock);
    lock.unlock();
    if (fence_.failed()) drain();
    return true;
  }
  void drain() override {
    std::unique_lock lock(mutex_);
    while (!empty())
      step(lock);
    lock.unlock();
    fence_.rethrow();
  }

 private:
  /** One item of one ready queue; there is one, since a wait is for what was recorded before it. A
   * queue is favoured for a while, so that one runs far ahead of the others, and with every second
   * seed one runs only where all others wait. */
  void step(std::unique_lock<std::mutex>& lock) {
    size_t ready_queues[kQueues];
    size_t n = 0;
    for (size_t q = 0; q < kQueues; ++q)
      if (q != starved_ && ready(q)) ready_queues[n++] = q;
    if (n == 0 && starved_ < kQueues && ready(starved_)) ready_queues[n++] = starved_;
    FERRY_CHECK(n > 0, "every queue waits for another");
    if (patience_ == 0 || !ready(favourite_) || favourite_ == starved_) {
      favourite_ = ready_queues[random_() % n];
      patience_ = 1 + random_() % 24;
    }
    --patience_;
    run_head(favourite_, lock);
  }

  std::mt19937_64 random_;
  const size_t starved_;  ///< kQueues and more: none
  size_t favourite_ = 0;
  uint64_t patience_ = 0;
};

class ThreadedDevice final : public QueuedDevice {
 public:
  ThreadedDevice(const SimulatedOptions& options, WorkerPool& pool) : QueuedDevice(options, pool) {
    for (size_t q = 0; q < kQueues; ++q)
      threads_.emplace_back([this, q](std::stop_token stop) {
        std::unique_lock lock(mutex_);
        while (true) {
          changed_.wait(lock, [&] { return stop.stop_requested() || ready(q); });
          if (stop.stop_requested()) return;
          run_head(q, lock);
        }
      });
  }
  ~ThreadedDevice() override {
    for (auto& thread : threads_)
      thread.request_stop();
    {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    }
    threads_.clear();
  }
  bool wait_host(EventId event, std::chrono::milliseconds patience) override {
    std::unique_lock lock(mutex_);
    const uint64_t generation = events_[event].submitted;
    if (!changed_.wait_for(lock, patience, [&] { return happened(event, generation); }))
      return false;
    lock.unlock();
    if (fence_.failed()) drain();
    return true;
  }
  void drain() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return empty() && running_ == 0; });
    lock.unlock();
    fence_.rethrow();
  }

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<Device> make_simulated_device(const SimulatedOptions& options, WorkerPool& pool) {
  switch (options.mode) {
    case SimulatedMode::serial:
      return std::make_unique<SerialDevice>(options, pool);
    case SimulatedMode::adversarial:
      return std::make_unique<AdversarialDevice>(options, pool);
    case SimulatedMode::threads:
      return std::make_unique<ThreadedDevice>(options, pool);
  }
  return nullptr;
}

}  // namespace ferry
