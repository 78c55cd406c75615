#pragma once
// The segments of one block, as a checkpoint reads them beside the steps.

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "offload/device/device.h"
#include "offload/executor/run_memory.h"
#include "offload/executor/state_window.h"

namespace ferry {

/** A range of bytes of a segment, and host memory of the same size. For a split master the bytes
 * are those of whole fp32 values, which the master and the weights are together. */
struct StatePiece {
  Segment segment{};
  int64_t offset_bytes = 0;
  std::span<std::byte> to;
};

/** One block's states, wherever they are. */
class StateSource {
 public:
  virtual ~StateSource() = default;
  virtual int block() const = 0;
  /** Copies all pieces, and calls `look` with each one's index, in any thread. */
  virtual void read(std::span<const StatePiece> pieces,
                    const std::function<void(size_t piece)>& look) = 0;
};

/** Reads one block's segments on the save queue. */
class BlockStates final : public StateSource {
 public:
  /** Counts in n_read_bytes what read() has done. */
  BlockStates(const StepShape& shape,
              Device& device,
              WorkerPool& pool,
              const RunMemory& memory,
              StateWindow* window,
              int block,
              std::atomic<int64_t>& n_read_bytes)
      : shape_(shape),
        device_(device),
        pool_(pool),
        memory_(memory),
        window_(window),
        block_(block),
        n_read_bytes_(n_read_bytes) {}
  int block() const override { return block_; }
  /** Copies all pieces, from the GPU itself or on the workers, who then call `look` with each
   * piece's index. Pieces of some hundred KiB keep all workers busy and are still in their caches.
   */
  void read(std::span<const StatePiece> pieces,
            const std::function<void(size_t piece)>& look) override;

 private:
  /** The piece's bytes that lie in this place, and where in it they are wanted. A split master has
   * two parts, the upper halves first, which may lie in two places. */
  std::vector<HostCopy> parts_of(const StatePiece& piece, Place place) const;
  /** The bytes of a piece that lies on a drive. */
  void read_from_drive(const StatePiece& piece);
  bool is_split(const StatePiece& piece) const {
    return shape_.split_master && piece.segment == Segment::master;
  }

  const StepShape& shape_;
  Device& device_;
  WorkerPool& pool_;
  const RunMemory& memory_;
  StateWindow* window_;
  int block_;
  std::atomic<int64_t>& n_read_bytes_;
};

}  // namespace ferry
