#pragma once
// A device: memory in two places, queues, events between them. CUDA or simulated; the executor
// knows no other difference. Work of one queue runs in the order it was submitted; between queues
// only record() and wait() order.
//
//   device.submit(QueueId::h2d, [=] { device.copy(QueueId::h2d, slot, weights, n); });
//   device.record(fetched);  // an event of h2d
//   device.wait(QueueId::compute, fetched);
//   device.submit(QueueId::compute, [=] { block.forward(...); });
//
// All functions are called by one thread (the one that steps), but copy() and math() by submitted
// work itself. A throw inside submitted work is kept by the fence, later work is skipped,
// wait_host() rethrows it.

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "offload/device/host/first_touch.h"
#include "offload/device/host/worker_pool.h"
#include "offload/device/step_fence.h"
#include "offload/step/action.h"
#include "offload/step/place.h"
#include "simd/kernels.h"

namespace ferry {

using EventId = int;
using StampId = size_t;

/** Arithmetic on a place's memory, on the queue whose work calls it; the same bits on CPU and GPU.
 */
class DeviceMath {
 public:
  virtual ~DeviceMath() = default;
  /** A step of the optimizer on these. */
  virtual void update(std::span<const simd::UpdateArgs> tensors) = 0;
  /** sum (fp32) = g on the first micro-batch, += g on the others. */
  virtual void accumulate(float* sum, const void* g, DType type, int64_t n, bool first) = 0;
  /** *total = the square sum of g (n) by the norm tree of simd/kernels.h. */
  virtual void square_sum(const void* g, DType type, int64_t n, double* total) = 0;
  /** The sums of that tree's chunks, in order. */
  virtual void square_sum_chunks(const void* g, DType type, int64_t n, double* sums) = 0;
  virtual void zero(void* to, int64_t n_bytes) = 0;
};

/** Zero-filled memory of one place, freed with the object. */
class Reservation {
 public:
  virtual ~Reservation() = default;
  virtual std::byte* data() = 0;
  virtual int64_t n_bytes() const = 0;
  /** Gives the memory back to the system and keeps its addresses; the content is lost. False, and
   * nothing happens, where the system cannot do that. Nothing may be under way in it. */
  virtual bool release() = 0;
  /** Takes memory at the same addresses again after release(); its content is undefined. Throws
   * Error(does_not_fit) where it is not free now; may be tried again. */
  virtual void acquire() = 0;
};

/** The host memory of a device that is pinned, in bytes. */
struct PinnedBytes {
  int64_t pinned = 0;    ///< with the ring
  int64_t ring = 0;      ///< slots for what is not pinned
  int64_t unpinned = 0;  ///< what copies touch and is not pinned: it goes through the ring
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  virtual bool is_cuda() const = 0;
  /** One reservation a place; throws Error(does_not_fit) that names place and size. Host memory is
   * written to by `touch` before it is pinned: by the caller's thread, if `touch` is empty. Host
   * memory beyond `copied` is never an end of a copy to or from the device, and is not pinned. As
   * much of the rest is pinned, from its begin on, as may be and as the system allows; copies of
   * what remains go through a ring of pinned slots, which the first reservation of host memory
   * makes where it needs one. */
  virtual std::unique_ptr<Reservation> reserve(Place place,
                                               int64_t n_bytes,
                                               const FirstTouch& touch,
                                               const ByteRange& copied) = 0;
  std::unique_ptr<Reservation> reserve(Place place, int64_t n_bytes, const FirstTouch& touch = {}) {
    return reserve(place, n_bytes, touch, {0, n_bytes});
  }
  virtual PinnedBytes pinned_bytes() const = 0;

  /** An event of one queue: its records happen in their order there, so that a wait for one of them
   * is never ended by a later one. */
  virtual EventId make_event(QueueId queue) = 0;
  virtual void submit(QueueId queue, std::function<void()> work) = 0;
  /** Marks the end of what was submitted to the event's queue before. */
  virtual void record(EventId event) = 0;
  /** Work submitted to `queue` from now on runs after what `event` recorded last; no effect if it
   * never was. */
  virtual void wait(QueueId queue, EventId event) = 0;
  /** Blocks the caller until the event's last record has happened: true, or, with every queue
   * drained, rethrows the first failure. False if it has not within `patience`. */
  virtual bool wait_host(EventId event, std::chrono::milliseconds patience) = 0;
  /** Blocks the caller until it may itself do what follows the event's last record: until the
   * record has happened; on a stream of the GPU, until work that the caller submits there stands
   * behind the record. False and throws as wait_host() does. */
  virtual bool wait_turn(EventId event, std::chrono::milliseconds patience) {
    return wait_host(event, patience);
  }
  /** wait_host() for as long as it takes: for what no watchdog looks at. */
  void await_host(EventId event) {
    while (!wait_host(event, std::chrono::seconds(10))) {
    }
  }
  /** True once the event's last record has happened. */
  virtual bool happened(EventId event) = 0;
  /** Marks a moment of the queue, after what was submitted to it before. For traces. */
  virtual StampId stamp(QueueId queue) = 0;
  /** The time of a stamp, in seconds of one clock for all queues; NaN where it has not come. Call
   * it after drain(). */
  virtual double seconds_of(StampId stamp) = 0;
  /** Their numbers may come again. */
  virtual void forget_stamps() = 0;
  /** Blocks until every queue is empty, however long that takes; rethrows the first failure. */
  virtual void drain() = 0;

  /** Behaves as if submitted work had thrown this: queued work drains without effect. */
  virtual void fail(std::exception_ptr failure) = 0;

  /** Inside work of a transfer queue: dst and src as the queue's direction says; on `collective`
   * both lie on the device. What goes through a ring has been read from host memory, or written to
   * it, when copy() returns. Inside work of the save queue: from either place to the host, done
   * when await_copies() returns. */
  virtual void copy(QueueId queue, void* dst, const void* src, int64_t n_bytes) = 0;
  virtual void await_copies() = 0;
  virtual DeviceMath& math() = 0;
  /** Fills a released slot with bytes that no result survives, where the device can be spared it
   * (simulated). */
  virtual void poison(void* slot, int64_t n_bytes) = 0;
  /** The compute queue's cudaStream_t; null off CUDA. */
  virtual void* compute_stream() = 0;
  /** The cudaStream_t of the queue `collective`; null off CUDA. */
  virtual void* collective_stream() = 0;
  /** The device's place among the GPUs that the process sees; 0 off CUDA. */
  virtual int index() const { return 0; }
};

/** The ways in which the simulated device runs its queues. */
enum class SimulatedMode : uint8_t {
  serial,       ///< at once, in the order submitted: what training on a CPU uses
  adversarial,  ///< as late and in as odd an order as events allow, drawn from the seed, on the
                ///< waiting thread
  threads,      ///< one thread a queue
};

struct SimulatedOptions {
  SimulatedMode mode = SimulatedMode::serial;
  uint64_t seed = 0;
  int64_t gpu_capacity_bytes = INT64_MAX;
  bool poison = false;
  int64_t pinned_bytes_max = INT64_MAX;  ///< as that of make_cuda_device()
  int64_t pinnable_bytes = INT64_MAX;    ///< the system that is played refuses to pin more
};

/** `pool` does the arithmetic and outlives the device. */
std::unique_ptr<Device> make_simulated_device(const SimulatedOptions& options, WorkerPool& pool);

/** Says whether this build and machine can make a CUDA device, and in words why not. */
struct CudaProbe {
  bool usable = false;
  std::string why_not;
  std::string cure;      ///< the cure of why_not
  bool has_gpu = false;  ///< there is one that cannot be used, by this driver or build
  std::string gpu_name;
  int compute_capability = 0;  ///< 90 for 9.0
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};
/** `index` counts the GPUs that the process sees. */
CudaProbe probe_cuda(int index = 0);
/** The same of a GPU that this process does not use otherwise: nothing of the process stays there.
 */
CudaProbe probe_other_gpu(int index);
/** The ways in which queues of the GPU wait for work of the host. */
enum class HostWaits : uint8_t {
  probed,   ///< in the driver, or in threads where the driver refuses; FERRY_HOST_WAITS=driver or
            ///< =threads decides beforehand
  driver,   ///< stream memory operations: the GPU looks at a flag, no thread waits
  threads,  ///< a thread for each queue waits, then submits what follows
};
/** At most `pinned_bytes_max` of host memory are pinned; where a ring is needed, threads wait for
 * host work. Several devices may share a GPU. Throws Error(machine) where probe_cuda() says it
 * cannot. */
std::unique_ptr<Device> make_cuda_device(HostWaits waits = HostWaits::probed,
                                         int64_t pinned_bytes_max = INT64_MAX,
                                         int index = 0);
/** Bytes the driver counts as used on a GPU. */
int64_t cuda_driver_used_bytes(int index = 0);

}  // namespace ferry
