#pragma once
// Pins the host memory that copies touch, as far as the limit and the system allow, and keeps a
// ring for the rest. A device owns the Pinning; reservations of the device hold their pinned
// pieces. Any thread may look up parts; the thread that steps calls all other functions.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

#include "offload/device/device.h"
#include "offload/device/host/copy_ring.h"
#include "offload/device/host/mapped_pages.h"

namespace ferry {

/** The calls that pin: the driver's, or a played system's for tests. */
class PinningSystem {
 public:
  virtual ~PinningSystem() = default;
  /** False where the system refuses: then nothing of [at, at + n_bytes) is pinned, and no error is
   * left behind. */
  virtual bool pin(std::byte* at, int64_t n_bytes) = 0;
  /** Takes the same arguments as the pin() before. */
  virtual void unpin(std::byte* at, int64_t n_bytes) = 0;
};

/** Some memory that copies treat alike. */
struct HostPart {
  int64_t n_bytes = 0;
  bool uses_ring = false;
};

class Pinning {
 public:
  /** Pins in whole units of `unit_bytes`, at most `bytes_max` in all. */
  Pinning(std::unique_ptr<PinningSystem> system, int64_t bytes_max, int64_t unit_bytes);
  ~Pinning();
  Pinning(const Pinning&) = delete;
  Pinning& operator=(const Pinning&) = delete;

  /** Pins the part `copied` of the memory at `data`, or as much of that part's begin as it can. The
   * first memory of all makes the ring where it needs one. Later memory makes none, since queues
   * with a ring wait in another way: the driver stages copies of its pages that are not pinned.
   * Throws Error(does_not_fit) where not even a ring can be pinned. */
  void add(std::byte* data, const ByteRange& copied);
  /** All that was added from `data` on. */
  void remove(std::byte* data);

  /** As many of [at, at + n_bytes) from `at` on as one copy may have an end in: they lie in one
   * piece that was pinned by one call, or in none. */
  HostPart first_part(const void* at, int64_t n_bytes) const;
  /** Calls each(to, from, n_bytes, uses_ring) for the parts of a copy of this queue. */
  template <class Each>
  void for_parts(QueueId queue, void* to, const void* from, int64_t n_bytes, Each&& each) const {
    auto* to_at = static_cast<std::byte*>(to);
    auto* from_at = static_cast<const std::byte*>(from);
    for (int64_t n = 0; n_bytes > 0; n_bytes -= n, to_at += n, from_at += n) {
      const HostPart read = first_part(from_at, n_bytes), written = first_part(to_at, read.n_bytes);
      n = written.n_bytes;
      each(to_at, from_at, n,
           (queue == QueueId::h2d && read.uses_ring) ||
               (queue == QueueId::d2h && written.uses_ring));
    }
  }
  bool has_ring() const { return ring_.has_value(); }
  /** The slots of the first direction, or of the second. */
  std::span<std::byte> ring_slots(int direction) const;
  int64_t ring_slot_bytes() const { return ring_size_.slot_bytes; }
  PinnedBytes bytes() const;

 private:
  struct Part {
    const std::byte* end = nullptr;
    bool uses_ring = false;
  };
  struct Piece {
    std::byte* at = nullptr;
    int64_t n_bytes = 0;
  };
  struct Added {
    std::vector<Piece> pieces;
    std::vector<const std::byte*> parts;  ///< keys of parts_
    int64_t unpinned_bytes = 0;
  };
  bool pin(Added& added, std::byte* at, int64_t n_bytes);
  int64_t pin_pieces(Added& added, std::byte* begin, int64_t n_bytes);
  void unpin(const Piece& piece);
  void make_ring();
  void note(Added& added, const std::byte* begin, int64_t n_bytes, bool uses_ring);

  std::unique_ptr<PinningSystem> system_;
  const int64_t bytes_max_, unit_bytes_;
  int64_t pinned_bytes_ = 0;
  bool is_first_ = true;
  RingSize ring_size_;
  std::optional<MappedPages> ring_;
  std::map<const std::byte*, Added> added_;
  mutable std::shared_mutex looking_;       // copies of several queues look at once
  std::map<const std::byte*, Part> parts_;  ///< by their begin
};

}  // namespace ferry
