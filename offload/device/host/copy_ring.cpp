#include "offload/device/host/copy_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "offload/step/place.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {

CopyRing::CopyRing(std::span<std::byte> memory,
                   int64_t slot_bytes,
                   std::unique_ptr<RingLink> link,
                   WorkerPool& pool)
    : memory_(memory), slot_bytes_(slot_bytes), link_(std::move(link)), pool_(pool) {
  FERRY_CHECK(std::ssize(memory) >= kRingSlots * slot_bytes, "{} bytes for slots of {}",
              memory.size(), slot_bytes);
}

class CopyRing::Chunks {
 public:
  Chunks(int64_t n_bytes, int64_t chunk_bytes) : n_bytes_(n_bytes), chunk_bytes_(chunk_bytes) {}
  /** Where the chunk begins and how many bytes it has; no bytes after the last chunk. */
  ByteRange take() {
    const int64_t at = next_.fetch_add(1) * chunk_bytes_;
    return {at, std::clamp<int64_t>(n_bytes_ - at, 0, chunk_bytes_)};
  }

 private:
  int64_t n_bytes_, chunk_bytes_;
  std::atomic<int64_t> next_{0};
};

void CopyRing::run(int64_t n_bytes, const std::function<void(Chunks& chunks, Slots slots)>& share) {
  const int64_t chunk_bytes = ring_chunk_bytes(n_bytes, slot_bytes_);
  Chunks chunks(n_bytes, chunk_bytes);
  const int n = n_bytes <= chunk_bytes ? 1 : std::min(pool_.n_workers(), kRingSlots);
  pool_.parallel_for(n, [&](int64_t thread) {
    const auto first = static_cast<int>(kRingSlots * thread / n);
    const auto end = static_cast<int>(kRingSlots * (thread + 1) / n);
    share(chunks, {.first = first, .n = end - first});
  });
}

void CopyRing::to_gpu(void* gpu, const void* host, int64_t n_bytes) {
  run(n_bytes, [&](Chunks& chunks, Slots slots) {
    for (int index = slots.first;; index = slots.after(index)) {
      link_->await(index);
      const auto [at, n] = chunks.take();
      if (n == 0) return;
      std::memcpy(slot(index), static_cast<const std::byte*>(host) + at, static_cast<size_t>(n));
      link_->start(index, static_cast<std::byte*>(gpu) + at, slot(index), n);
    }
  });
}

void CopyRing::to_host(void* host, const void* gpu, int64_t n_bytes) {
  run(n_bytes, [&](Chunks& chunks, Slots slots) {
    std::array<ByteRange, kRingSlots> under_way{};  // by slot
    const auto start_next = [&](int index) {
      const auto [at, n] = under_way[static_cast<size_t>(index)] = chunks.take();
      if (n == 0) return;
      link_->await(index);
      link_->start(index, slot(index), static_cast<const std::byte*>(gpu) + at, n);
    };
    for (int index = slots.first; index < slots.first + slots.n; ++index)
      start_next(index);
    for (int index = slots.first;; index = slots.after(index)) {
      const auto [at, n] = under_way[static_cast<size_t>(index)];
      if (n == 0) return;
      link_->await(index);
      std::memcpy(static_cast<std::byte*>(host) + at, slot(index), static_cast<size_t>(n));
      start_next(index);
    }
  });
}

void CopyRing::finish() {
  for (int index = 0; index < kRingSlots; ++index)
    link_->await(index);
}

}  // namespace ferry
