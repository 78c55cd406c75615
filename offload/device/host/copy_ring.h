#pragma once
// A ring of pinned slots for copies between the GPU and host memory that is not pinned: chunk by
// chunk, each thread copies between that memory and a slot of the thread's while the GPU's engine
// copies other slots. No thread waits for another one, which may have lost its core to an update.
// Owned by a device, one for each direction; called by the work of one queue at a time.
//
//   CopyRing ring(memory, slot_bytes, std::move(link), pool);
//   ring.to_gpu(gpu, host, n_bytes);  // `host` has been read; the GPU's copies may be under way
//   ring.to_host(host, gpu, n_bytes);  // `host` has the bytes

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "offload/device/host/worker_pool.h"
#include "offload/step/ring_size.h"

namespace ferry {

/** A slot's way to and from the GPU. */
class RingLink {
 public:
  virtual ~RingLink() = default;
  /** One copy between slot `slot` and the GPU. Threads call it at once, each for its slots. */
  virtual void start(int slot, void* to, const void* from, int64_t n_bytes) = 0;
  /** Returns when the slot's last copy has been made; at once where there was none. */
  virtual void await(int slot) = 0;
};

class CopyRing {
 public:
  /** `memory` holds kRingSlots slots. `pool` copies between them and other memory. */
  CopyRing(std::span<std::byte> memory,
           int64_t slot_bytes,
           std::unique_ptr<RingLink> link,
           WorkerPool& pool);
  void to_gpu(void* gpu, const void* host, int64_t n_bytes);
  void to_host(void* host, const void* gpu, int64_t n_bytes);
  /** Returns when the GPU has made all copies. */
  void finish();

 private:
  std::byte* slot(int index) { return memory_.data() + index * slot_bytes_; }
  /** The next chunk of a copy that no thread has taken. */
  class Chunks;
  /** The slots of one thread. */
  struct Slots {
    int first = 0, n = 0;
    int after(int index) const { return first + (index - first + 1) % n; }
  };
  /** Runs `share` once for each thread. */
  void run(int64_t n_bytes, const std::function<void(Chunks& chunks, Slots slots)>& share);

  std::span<std::byte> memory_;
  int64_t slot_bytes_;
  std::unique_ptr<RingLink> link_;
  WorkerPool& pool_;
};

}  // namespace ferry
