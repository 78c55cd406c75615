#pragma once
// Bytes of the states on a drive, one piece at a time in the layout's window: for loading, export
// and checkpoints, which ask by block and segment as if the states lay in memory. Used between
// steps, or on the save queue.

#include <span>

#include "offload/executor/run_memory.h"
#include "offload/store/state_store.h"

namespace ferry {

class StateWindow {
 public:
  /** All outlive it. The layout of the memory has a window. */
  StateWindow(const StepShape& shape, const RunMemory& memory, StateStore& store);

  /** Bytes of a segment that lives on the drive, counted as if it lay in one row. What was never
   * written is zero. Throws as StateStore::read(). */
  void read(int block, Segment segment, int64_t offset, std::span<std::byte> to);
  void write(int block, Segment segment, int64_t offset, std::span<const std::byte> from);
  /** Puts all on the drive that a step reads or a generation needs: what was changed or never
   * written, and the copies of weights. The caller commits. */
  void finish_writes();
  /** Fills the weights in memory from the generation that the store begins with. */
  void restore_weights();
  /** Puts back what was changed, and holds nothing: a step may change it from here on. */
  void let_go() {
    put_back();
    forget();
  }

 private:
  /** Makes a piece the one in the window; `is_read`: its bytes are wanted. */
  void hold(int block, int piece);
  void put_back();
  void forget() { block_ = -1; }
  bool are_weights_on_drive(int block) const { return memory_.layout().block(block).reads_weights; }
  std::byte* weights_of(int block, const StateRecord& record) const;

  const StepShape& shape_;
  const RunMemory& memory_;
  StateStore& store_;
  std::byte* slot_;
  int block_ = -1, piece_ = -1;
  bool is_changed_ = false;
};

}  // namespace ferry
