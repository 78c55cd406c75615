#include "offload/device/host/pinning.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {

Pinning::Pinning(std::unique_ptr<PinningSystem> system, int64_t bytes_max, int64_t unit_bytes)
    : system_(std::move(system)), bytes_max_(bytes_max), unit_bytes_(unit_bytes) {}

Pinning::~Pinning() {
  for (const auto& [data, added] : added_)
    for (const Piece& piece : added.pieces)
      unpin(piece);
  if (ring_) unpin({ring_->data(), ring_size_.n_bytes});
}

void Pinning::add(std::byte* data, const ByteRange& copied) {
  const bool is_first = std::exchange(is_first_, false);
  if (copied.n_bytes == 0) return;
  // Bytes beside it in the same unit are pinned with it. The memory begins and ends on a unit.
  const int64_t begin = copied.offset / unit_bytes_ * unit_bytes_;
  const int64_t n_bytes = round_up(copied.offset + copied.n_bytes, unit_bytes_) - begin;
  Added& added = added_[data];
  if (n_bytes <= bytes_max_ - pinned_bytes_ && pin(added, data + begin, n_bytes)) return;
  if (!ring_ && is_first) make_ring();
  const int64_t room = std::max<int64_t>(0, bytes_max_ - pinned_bytes_);
  const int64_t wanted = std::min(n_bytes, room / unit_bytes_ * unit_bytes_);
  const bool was_refused = wanted == n_bytes;
  const int64_t pinned = !was_refused && pin(added, data + begin, wanted)
                             ? wanted
                             : pin_pieces(added, data + begin, wanted);
  added.unpinned_bytes = n_bytes - pinned;
  if (ring_) note(added, data + begin + pinned, n_bytes - pinned, /*uses_ring=*/true);
}

void Pinning::remove(std::byte* data) {
  const auto found = added_.find(data);
  if (found == added_.end()) return;
  {
    std::lock_guard lock(looking_);
    for (const std::byte* part : found->second.parts)
      parts_.erase(part);
  }
  for (const Piece& piece : found->second.pieces)
    unpin(piece);
  added_.erase(found);
}

bool Pinning::pin(Added& added, std::byte* at, int64_t n_bytes) {
  if (n_bytes == 0 || !system_->pin(at, n_bytes)) return false;
  pinned_bytes_ += n_bytes;
  added.pieces.push_back({at, n_bytes});
  note(added, at, n_bytes, /*uses_ring=*/false);
  return true;
}

void Pinning::unpin(const Piece& piece) {
  system_->unpin(piece.at, piece.n_bytes);
  pinned_bytes_ -= piece.n_bytes;
}

/** The bytes from `begin` on that the system takes piece by piece. */
int64_t Pinning::pin_pieces(Added& added, std::byte* begin, int64_t n_bytes) {
  const int64_t piece_bytes = round_up(64 * kMiB, unit_bytes_);
  int64_t pinned = 0;
  while (pinned < n_bytes) {
    const int64_t n = std::min(piece_bytes, n_bytes - pinned);
    if (!pin(added, begin + pinned, n)) break;
    pinned += n;
  }
  // A system that is at its end refuses others, too: libraries pin a little as they go.
  if (pinned == n_bytes || added.pieces.empty()) return pinned;
  const Piece last = added.pieces.back();
  {
    std::lock_guard lock(looking_);
    parts_.erase(last.at);
  }
  std::erase(added.parts, last.at);
  added.pieces.pop_back();
  unpin(last);
  return pinned - last.n_bytes;
}

void Pinning::make_ring() {
  for (RingSize size = ring_size(bytes_max_);;) {
    ring_.emplace(size.n_bytes, "host memory for copies", "lower host_memory");
    // The GPU's engine finds pages: they are there before.
    std::fill_n(ring_->data(), size.n_bytes, std::byte{0});
    if (system_->pin(ring_->data(), size.n_bytes)) {
      ring_size_ = size;
      pinned_bytes_ += size.n_bytes;
      return;
    }
    ring_.reset();
    constexpr int64_t kSlot_bytes_least = 64 * kKiB;
    if (size.slot_bytes <= kSlot_bytes_least)
      throw Error(Fault::does_not_fit, "device.reserve",
                  fmt::format("the system would not pin {} of host memory for copies to the GPU",
                              format_bytes(size.n_bytes)),
                  "raise the memlock limit (`ulimit -l unlimited`), end what else pins memory, or "
                  "see `ferry doctor`");
    size = ring_size(size.n_bytes);  // half of it
  }
}

void Pinning::note(Added& added, const std::byte* begin, int64_t n_bytes, bool uses_ring) {
  if (n_bytes == 0) return;
  added.parts.push_back(begin);
  std::lock_guard lock(looking_);
  parts_[begin] = {begin + n_bytes, uses_ring};
}

HostPart Pinning::first_part(const void* at, int64_t n_bytes) const {
  const auto* const begin = static_cast<const std::byte*>(at);
  std::shared_lock lock(looking_);
  const auto next = parts_.upper_bound(begin);
  if (next != parts_.begin()) {
    const Part& part = std::prev(next)->second;
    if (begin < part.end) return {std::min<int64_t>(n_bytes, part.end - begin), part.uses_ring};
  }
  if (next == parts_.end()) return {n_bytes, false};
  return {std::min<int64_t>(n_bytes, next->first - begin), false};
}

std::span<std::byte> Pinning::ring_slots(int direction) const {
  const auto n_bytes = static_cast<size_t>(kRingSlots * ring_size_.slot_bytes);
  return {ring_->data() + static_cast<size_t>(direction) * n_bytes, n_bytes};
}

PinnedBytes Pinning::bytes() const {
  PinnedBytes bytes = {.pinned = pinned_bytes_, .ring = ring_ ? ring_size_.n_bytes : 0};
  for (const auto& [data, added] : added_)
    bytes.unpinned += added.unpinned_bytes;
  return bytes;
}

}  // namespace ferry
