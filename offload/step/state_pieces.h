#pragma once
// The states and weights of a block that live on a drive, cut into pieces: each is read into a slot
// of the host, updated there and written back as one record. Pure arithmetic: the layout makes
// slots of it, the executor finds its arguments in them, and the store lies on the drive as it
// says.

#include <array>
#include <cstdint>
#include <functional>

#include "offload/step/layout.h"
#include "src/base/bytes.h"

namespace ferry {

/** Drives read and write whole pages. */
inline constexpr int64_t kDrivePage_bytes = 4096;

/** A piece's record in a slot and on the drive. Each part begins at a page of the drive. */
struct StateRecord {
  int64_t begin = 0, n_elements = 0;  ///< of the block's trained prefix, as far as it goes
  /** Empty where passes read the master itself. */
  ByteRange master;
  /** The optimizer's states, and the exponents of 8-bit states. */
  std::array<ByteRange, simd::kStates_max> states, exponents;
  int64_t states_bytes = 0;  ///< whole pages with all these
  /** Behind them the weights that passes read, frozen ones too, or a copy of those in memory. Empty
   * but for stores_weights(). */
  ByteRange weights;
  int64_t n_bytes = 0;       ///< of the whole record: pages
  int64_t update_bytes = 0;  ///< from the start on: what an update reads
  /** Behind the record in a slot, and by themselves on the drive: gradients that wait there. Empty
   * where they wait in memory. */
  ByteRange grads;
  /** Bytes of the gradients with the end of their last page. */
  int64_t grads_bytes() const { return round_up(grads.n_bytes, kDrivePage_bytes); }

  /** The bytes of a segment's elements; of states without exponents. */
  const ByteRange& part(Segment segment) const;
};
StateRecord state_record(const StepShape& shape, int block, int piece);

/** Bytes of a segment that lie together in a record. */
struct RecordPart {
  int piece = 0;
  int64_t offset = 0;  ///< in the record
  int64_t done = 0;    ///< bytes of the range before it
  int64_t n_bytes = 0;
};
/** Calls `each` with the parts of a range of a segment's bytes, counted as if the segment lay in
 * one row, in order. Segment::weights: of what stores_weights() says. */
void for_record_parts(const StepShape& shape,
                      int block,
                      Segment segment,
                      ByteRange range,
                      const std::function<void(const RecordPart&)>& each);

/** Bytes of the largest record. 0: no states live on a drive. */
int64_t state_record_bytes(const StepShape& shape);
/** Bytes of a slot: the same with gradients that wait on a drive. */
int64_t state_slot_bytes(const StepShape& shape);
/** Bytes of the largest piece of gradients that wait on a drive, in whole pages. */
int64_t grad_piece_bytes(const StepShape& shape);
/** Bytes of memory that the block's gradients take where a drive writes them from there: the last
 * piece goes on to the end of a page. 0: they do not wait on a drive. */
int64_t drive_grads_bytes(const StepShape& shape, int block);

/** Pieces of which the block has something on a drive. */
int n_drive_pieces(const StepShape& shape, int block);

/** True where the block's weights lie on the drive, or where those in memory hold part of the
 * master: all of it in fp32, else the upper halves. What is trained of these goes to the drive with
 * the states, so that a generation there is whole. */
bool stores_weights(const StepShape& shape, int block);

/** Bytes of a block's weights as they are read from a drive in one row: whole pages at the end. */
int64_t drive_weights_bytes(const StepShape& shape, int block);

}  // namespace ferry
