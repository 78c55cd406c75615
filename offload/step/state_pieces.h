#pragma once
// The states of a block that live on a drive, cut into pieces: each is read into a slot of the
// host, updated there and written back as one record. Pure arithmetic: the layout makes slots of
// it, the executor finds its arguments in them, and the store lies on the drive as it says.

#include <cstdint>

#include "offload/step/layout.h"

namespace ferry {

/** A piece's record in a slot and on the drive. Each part begins at a page of the drive. */
struct StateRecord {
  int64_t begin = 0, n_elements = 0;  ///< of the block's trained prefix
  /** Empty where passes read the master itself: it lies in memory. */
  ByteRange master;
  ByteRange adam_m, adam_v;
  ByteRange m_exponents, v_exponents;  ///< of 8-bit states
  int64_t states_bytes = 0;            ///< whole pages with all these: what an update reads
  /** Behind them a copy of what passes read, which no update reads. Empty but for stores_weights().
   */
  ByteRange weights;
  int64_t n_bytes = 0;  ///< of the whole record: pages

  /** The bytes of a segment's elements; of adam_m and adam_v without exponents. */
  const ByteRange& part(Segment segment) const {
    return segment == Segment::master ? master : segment == Segment::adam_m ? adam_m : adam_v;
  }
};
StateRecord state_record(const StepShape& shape, int block, int piece);

/** Bytes of the largest record: of a slot. 0: no states live on a drive. */
int64_t state_slot_bytes(const StepShape& shape);

/** True where the weights in memory hold part of the master: all of it in fp32, else the upper
 * halves. What is trained of them goes to the drive with the states, so that a generation there
 * is whole. */
bool stores_weights(const StepShape& shape, int block);

}  // namespace ferry
