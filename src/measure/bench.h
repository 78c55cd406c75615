#pragma once
// The device under test with its memory and threads, reserved once for all parts: a CUDA device, or
// the simulated one that training on a CPU uses. Private to src/measure.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "offload/device/device.h"
#include "offload/device/host/worker_pool.h"
#include "src/engine/cuda/block_graphs.h"
#include "src/engine/cuda/compute_stream.h"
#include "src/engine/cuda/cuda_allocator.h"
#include "src/measure/measure.h"
#include "src/measure/timing.h"

namespace ferry::measure {

/** Memory given out from its start; all of it again after reset(). */
class Arena {
 public:
  Arena() = default;
  Arena(std::byte* base, int64_t n_bytes) : base_(base), n_bytes_(n_bytes) {}
  /** On a tensor's boundary. Throws Error(does_not_fit). */
  std::byte* take(int64_t n_bytes);
  void reset() { used_bytes_ = 0; }
  int64_t n_bytes() const { return n_bytes_; }

 private:
  std::byte* base_ = nullptr;
  int64_t n_bytes_ = 0, used_bytes_ = 0;
};

/** The parts of the host memory that is measured in, in their order there. */
struct HostParts {
  int64_t copies_bytes = 0;  ///< of each of the two ends of copies
  int64_t update_bytes = 0;  ///< no more than its segments may take
  int64_t update_begin() const { return 2 * copies_bytes; }
  int64_t all_bytes() const { return update_begin() + update_bytes; }
};
/** AdamW's segments take what the ends of the copies leave of `most_bytes`. */
HostParts host_parts(int64_t most_bytes, bool has_copies);

class Bench;

/** Work that a GPU repeats from CUDA graphs, so that what the CPU takes to launch it has no part in
 * its time; called as it is elsewhere. */
class Replayed {
 public:
  using Work = std::function<void(const RandomKey&)>;
  /** `can_be_recorded`: what a graph cannot hold is called as it is. */
  Replayed(Bench& bench, bool can_be_recorded, Work work);
  /** Seconds that n of them take. */
  double seconds_of(int n);

 private:
  Bench& bench_;
  Work work_;
  BlockGraphs graphs_;
  int n_recorded_ = 0;  ///< calls in a graph; 0: none
};

class Bench {
 public:
  /** Reserves host memory, pinned where there is a GPU, and GPU memory. What cannot be had is told
   * in `skipped`, and the arena for it is empty. */
  Bench(const MeasureOptions& options, const CudaProbe& probe, std::vector<std::string>& skipped);

  bool is_cuda() const { return device_->is_cuda(); }
  Device& device() { return *device_; }
  WorkerPool& pool() { return *pool_; }
  int n_threads() const { return pool_->n_workers(); }
  /** The system pins no host memory: there is some, and the arenas of copies are empty. */
  bool pins_nothing() const { return pins_nothing_; }

  Arena update_arena;  ///< host: segments of AdamW
  bool is_update_filled = false;
  Arena from_host, to_host;  ///< host: what copies read and write, of one size
  Arena gpu;                 ///< of the device; on a CPU, host memory
  Arena load;                ///< of a GPU: for work beside what is timed

  /** A dense tensor in `gpu` of normal numbers: zeros would let a GPU clock higher than it can. */
  at::Tensor tensor(at::IntArrayRef shape, at::ScalarType type) { return tensor(shape, type, gpu); }
  at::Tensor tensor(at::IntArrayRef shape, at::ScalarType type, Arena& arena);
  /** Seconds that `work`, called n times as the compute queue's, takes until it has run. */
  double seconds_of(int n, const std::function<void()>& work);

 private:
  bool open_gpu(const CudaProbe& probe, std::vector<std::string>& skipped);
  void open_cpu();
  void reserve_host(int64_t most_bytes, std::vector<std::string>& skipped);

  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Reservation> host_memory_, gpu_memory_;
  std::unique_ptr<CudaLibraryRegion> library_region_;
  std::unique_ptr<ComputeStream> stream_;
  EventId done_;
  bool pins_nothing_ = false;
};

}  // namespace ferry::measure
