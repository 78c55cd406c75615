#include "offload/device/host/copy_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

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

int CopyRing::take() {
  const int taken = next_;
  next_ = (next_ + 1) % kRingSlots;
  link_->await(taken);
  return taken;
}

void CopyRing::to_gpu(void* gpu, const void* host, int64_t n_bytes) {
  for (int64_t at = 0; at < n_bytes; at += slot_bytes_) {
    const int64_t n = std::min(slot_bytes_, n_bytes - at);
    const int index = take();
    copy(slot(index), static_cast<const std::byte*>(host) + at, n);
    link_->start(index, static_cast<std::byte*>(gpu) + at, slot(index), n);
  }
}

void CopyRing::to_host(void* host, const void* gpu, int64_t n_bytes) {
  const int first = next_;
  int64_t n_started = 0, started_bytes = 0;
  for (int64_t at = 0, n_done = 0; at < n_bytes; at += slot_bytes_, ++n_done) {
    for (; started_bytes < n_bytes && n_started < n_done + kRingSlots; ++n_started) {
      const int64_t n = std::min(slot_bytes_, n_bytes - started_bytes);
      const int index = take();
      link_->start(index, slot(index), static_cast<const std::byte*>(gpu) + started_bytes, n);
      started_bytes += n;
    }
    const int index = static_cast<int>((first + n_done) % kRingSlots);
    link_->await(index);
    copy(static_cast<std::byte*>(host) + at, slot(index), std::min(slot_bytes_, n_bytes - at));
  }
}

void CopyRing::finish() {
  for (int index = 0; index < kRingSlots; ++index)
    link_->await(index);
}

void CopyRing::copy(void* to, const void* from, int64_t n_bytes) {
  constexpr int64_t kPiece_bytes = 256 * kKiB;  // less takes no longer than to wake a thread
  const int64_t n_pieces =
      std::clamp<int64_t>(n_bytes / kPiece_bytes, 1, static_cast<int64_t>(pool_.n_workers()));
  if (n_pieces == 1) {
    std::memcpy(to, from, static_cast<size_t>(n_bytes));
    return;
  }
  pool_.parallel_for(n_pieces, [&](int64_t i) {
    const int64_t begin = n_bytes * i / n_pieces, end = n_bytes * (i + 1) / n_pieces;
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                static_cast<size_t>(end - begin));
  });
}

}  // namespace ferry
