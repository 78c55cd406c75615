#pragma once
// The reservations of a run, cut as its layout says. Owns every byte the executor touches; pointers
// are fixed for the run's life.

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "offload/device/device.h"
#include "offload/device/host/worker_pool.h"
#include "offload/step/layout.h"

namespace ferry {

/** Bytes that lie on the GPU, and where in host memory they are wanted. */
struct HostCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  int64_t n_bytes = 0;
};

class RunMemory {
 public:
  /** `pool` updates what lies in host memory, and outlives this. */
  RunMemory(Device& device, const Layout& layout, WorkerPool& pool);
  /** Start of a region; null for -1 and for what lies on a drive. */
  std::byte* at(RegionId id) const {
    if (id < 0 || layout_.region(id).place == Place::nvme) return nullptr;
    const Region& region = layout_.region(id);
    return reservations_[region.place]->data() + region.offset;
  }
  std::byte* segment(int block, Segment segment) const {
    return at(layout_.segment(block, segment));
  }
  /** The place of a segment that the run has. */
  Place place_of(int block, Segment segment) const {
    return layout_.region(layout_.segment(block, segment)).place;
  }
  const Layout& layout() const { return layout_; }
  /** Segments have changed: copies of weights elsewhere are old. */
  void note_new_weights() { ++weights_version_; }
  int64_t weights_version() const { return weights_version_; }

  /** Bytes on the GPU that live from step to step: what leave_gpu() keeps in host memory. */
  int64_t lasting_gpu_bytes() const;
  /** Between steps, with nothing under way on the GPU: gives the GPU's memory back and keeps what
   * lasts in host memory. False where the driver cannot; throws Error(does_not_fit) where the host
   * has no room. */
  bool leave_gpu(Device& device);
  /** Everything is where it was. Throws Error(does_not_fit) where the memory is not free now; may
   * be tried again. */
  void return_to_gpu(Device& device);
  /** Copies what lasts from the GPU, or from where leave_gpu() keeps it, to host memory: a
   * checkpoint goes on while the run is paused. On the save queue. */
  void read_lasting(Device& device, std::span<const HostCopy> copies) const;

 private:
  template <class Copy>
  void for_lasting(Copy&& copy);
  const std::byte* kept_at(const HostCopy& copy) const;

  const Layout& layout_;
  WorkerPool& pool_;
  PerPlace<std::unique_ptr<Reservation>> reservations_;
  std::unique_ptr<Reservation> kept_;  ///< the host's memory, while the GPU is given away
  bool has_left_gpu_ = false;
  std::atomic<int64_t> weights_version_ = 0;
  mutable std::mutex leaving_;  // read_lasting() reads where things are
};

}  // namespace ferry
