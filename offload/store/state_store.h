#pragma once
// The states of a step's blocks in an extent store: which segment holds which piece. The executor
// reads and writes records of pieces (offload/step/state_pieces.h) on its drive queues and commits
// after each step; a checkpoint pins what was committed.

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "offload/step/state_pieces.h"
#include "offload/store/store.h"

namespace ferry {

class StateStore {
 public:
  /** The segments of a store for the states that the shape has on a drive; empty: it has none.
   * Gradients come last. */
  static std::vector<StoredSegment> segments_of(const StepShape& shape);

  /** True where the store was made of segments_of() the shape. */
  static bool is_store_of(const StepShape& shape, const StoreLayout& layout);
  /** The same, whatever gradients the store has beside that: enough to read generations. */
  static bool has_states_of(const StepShape& shape, const StoreLayout& layout);

  /** The store has_states_of() the shape, else the caller has a bug; both outlive this. */
  StateStore(const StepShape& shape, ExtentStore& extents);

  ExtentStore& extents() { return extents_; }
  const ExtentStore& extents() const { return extents_; }
  /** The piece has been written at least once. */
  bool has(int block, int piece) const;
  /** Reads what an update reads of the piece, as it was written last, into a slot of whole pages.
   * Throws as ExtentStore::wait(). */
  void read(int block, int piece, std::byte* slot) const;
  /** Reads all weights of a block that has them on the drive, in one row: drive_weights_bytes() of
   * them, in whole pages. */
  void read_weights(int block, std::byte* to) const;
  /** Reads all of the record. */
  void read_all(int block, int piece, std::byte* slot) const {
    read_all(extents_.newest(), block, piece, slot);
  }
  /** The same as a generation has it. */
  void read_all(const Generation& from, int block, int piece, std::byte* slot) const;
  /** Writes all of the record beside what is committed. */
  void write(int block, int piece, const std::byte* slot);
  /** The piece's gradients: StateRecord::grads_bytes() of them. No generation has them. */
  void write_grads(int block, int piece, const std::byte* from);
  /** Throws as read(). */
  void read_grads(int block, int piece, std::byte* to) const;

 private:
  struct Piece {
    StateRecord record;
    SegmentId states = -1, weights = -1, grads = -1;
  };
  const Piece& piece_of(int block, int piece) const {
    return pieces_[static_cast<size_t>(block)][static_cast<size_t>(piece)];
  }

  void read_part(const Generation& from, SegmentId segment, std::byte* to, int64_t n_bytes) const;

  const StepShape& shape_;
  ExtentStore& extents_;
  std::vector<std::vector<Piece>> pieces_;  ///< by block
};

}  // namespace ferry
