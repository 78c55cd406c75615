#pragma once
// The size of the ring of pinned slots through which copies of host memory go that is not pinned: a
// device makes it, a plan counts with it.

#include <algorithm>
#include <cstdint>

#include "src/base/bytes.h"

namespace ferry {

/** The slots of both directions together. */
struct RingSize {
  int64_t slot_bytes = 0;
  int64_t n_bytes = 0;
};
/** Slots of one direction: each of at most four threads fills one while another is copied. */
inline constexpr int kRingSlots = 8;
/** Pinned memory is counted in pages. */
inline constexpr int64_t kPinnedPage_bytes = 4096;

/** The ring's size where at most so many bytes are pinned in all: half of them at most. */
constexpr RingSize ring_size(int64_t pinned_bytes_max) {
  // A copy of 2 MiB takes 40 us at 50 GB/s, much longer than its start.
  constexpr int64_t kSlot_bytes_max = 2 * kMiB, kSlots = 2 * kRingSlots;
  const int64_t share =
      pinned_bytes_max / (2 * kSlots) / kTensorAlignment_bytes * kTensorAlignment_bytes;
  const int64_t slot_bytes = std::clamp(share, kTensorAlignment_bytes, kSlot_bytes_max);
  return {slot_bytes, kSlots * slot_bytes};
}

/** Bytes of a chunk of a copy: a small copy is cut so that every slot has a part. */
constexpr int64_t ring_chunk_bytes(int64_t n_bytes, int64_t slot_bytes) {
  constexpr int64_t kChunk_bytes_min = 256 * kKiB;  // less takes no longer than to wake a thread
  const int64_t part = (n_bytes + kRingSlots - 1) / kRingSlots;
  return std::min(slot_bytes, std::max(kChunk_bytes_min, round_up(part, kTensorAlignment_bytes)));
}

/** Threads of one direction that copy between the slots and other memory: some saturate the link,
 * the others are the optimizer's. */
constexpr int ring_threads(int n_usable_threads) {
  return std::clamp(n_usable_threads / 4, 1, kRingSlots / 2);
}

}  // namespace ferry
