#pragma once
// The size of the ring of pinned slots through which copies of host memory go that is not pinned: a
// device makes it, a plan counts with it.

#include <algorithm>
#include <cstdint>

namespace ferry {

/** The slots of both directions together. */
struct RingSize {
  int64_t slot_bytes = 0;
  int64_t n_bytes = 0;
};
/** Slots of one direction: one is filled, one is copied, and two wait. */
inline constexpr int kRingSlots = 4;
/** Pinned memory is counted in pages. */
inline constexpr int64_t kPinnedPage_bytes = 4096;

/** The ring's size where at most so many bytes are pinned in all: half of them at most. */
constexpr RingSize ring_size(int64_t pinned_bytes_max) {
  // A copy of 4 MiB takes 80 us at 50 GB/s: long beside what it takes to start one.
  constexpr int64_t kSlot_bytes_max = 4 << 20, kSlots = 2 * kRingSlots, kAlignment_bytes = 512;
  const int64_t share = pinned_bytes_max / (2 * kSlots) / kAlignment_bytes * kAlignment_bytes;
  const int64_t slot_bytes = std::clamp(share, kAlignment_bytes, kSlot_bytes_max);
  return {slot_bytes, kSlots * slot_bytes};
}

/** Threads of one direction that copy between the slots and other memory: some saturate the link,
 * the others are the optimizer's. */
constexpr int ring_threads(int n_usable_threads) {
  return std::clamp(n_usable_threads / 4, 1, 4);
}

}  // namespace ferry
