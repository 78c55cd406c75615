#include "offload/device/host/copy_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>

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

void CopyRing::run(int64_t n_bytes,
                   const std::function<void(Chunks&, std::span<const int>)>& share) {
  std::array<int, kRingSlots> slots{};
  std::iota(slots.begin(), slots.end(), 0);
  const int64_t chunk_bytes = ring_chunk_bytes(n_bytes, slot_bytes_);
  Chunks chunks(n_bytes, chunk_bytes);
  const int n = n_bytes <= chunk_bytes ? 1 : std::min(pool_.n_workers(), kRingSlots);
  pool_.parallel_for(n, [&](int64_t thread) {
    const auto first = static_cast<size_t>(kRingSlots * thread / n);
    const auto end = static_cast<size_t>(kRingSlots * (thread + 1) / n);
    share(chunks, std::span(slots).subspan(first, end - first));
  });
}

void CopyRing::to_gpu(void* gpu, const void* host, int64_t n_bytes) {
  run(n_bytes, [&](Chunks& chunks, std::span<const int> slots) {
    for (size_t turn = 0;; turn = (turn + 1) % slots.size()) {
      const int index = slots[turn];
      link_->await(index);
      const auto [at, n] = chunks.take();
      if (n == 0) return;
      std::memcpy(slot(index), static_cast<const std::byte*>(host) + at, static_cast<size_t>(n));
      link_->start(index, static_cast<std::byte*>(gpu) + at, slot(index), n);
    }
  });
}

void CopyRing::to_host(void* host, const void* gpu, int64_t n_bytes) {
  run(n_bytes, [&](Chunks& chunks, std::span<const int> slots) {
    std::array<ByteRange, kRingSlots> under_way{};
    const auto start_next = [&](size_t turn) {
      under_way[turn] = chunks.take();
      const auto [at, n] = under_way[turn];
      if (n == 0) return;
      link_->await(slots[turn]);
      link_->start(slots[turn], slot(slots[turn]), static_cast<const std::byte*>(gpu) + at, n);
    };
    for (size_t turn = 0; turn < slots.size(); ++turn)
      start_next(turn);
    for (size_t turn = 0; under_way[turn].n_bytes > 0; turn = (turn + 1) % slots.size()) {
      const auto [at, n] = under_way[turn];
      link_->await(slots[turn]);
      std::memcpy(static_cast<std::byte*>(host) + at, slot(slots[turn]), static_cast<size_t>(n));
      start_next(turn);
    }
  });
}

void CopyRing::finish() {
  for (int index = 0; index < kRingSlots; ++index)
    link_->await(index);
}

}  // namespace ferry
