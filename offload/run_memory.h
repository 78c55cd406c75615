#pragma once
// The reservations of a run, cut as its layout says. Owns every byte the executor touches; pointers
// are fixed for the run's life.

#include <array>
#include <cstddef>
#include <memory>

#include "offload/device.h"
#include "offload/layout.h"

namespace ferry {

class RunMemory {
 public:
  RunMemory(Device& device, const Layout& layout) : layout_(layout) {
    for (Place place : {Place::gpu, Place::host})
      reservations_[static_cast<size_t>(place)] =
          device.reserve(place, layout.n_bytes[static_cast<size_t>(place)]);
  }
  /** Start of a region; null for -1. */
  std::byte* at(RegionId id) const {
    if (id < 0) return nullptr;
    const Region& region = layout_.region(id);
    return reservations_[static_cast<size_t>(region.place)]->data() + region.offset;
  }
  std::byte* segment(int block, Segment segment) const {
    return at(layout_.segments[static_cast<size_t>(block)][static_cast<size_t>(segment)]);
  }
  const Layout& layout() const { return layout_; }

 private:
  const Layout& layout_;
  std::array<std::unique_ptr<Reservation>, kPlaces> reservations_;
};

}  // namespace ferry
