#pragma once
// The order in which the blocks of a step have their passes on the compute queue. The pager makes
// its list from it, and the slots of layer inputs are planned for it.

#include <span>
#include <vector>

#include "offload/step/step_shape.h"

namespace ferry {

/** A block's pass on the compute queue, before slots are known. */
struct BlockPass {
  bool backward = false;
  int block = 0;
  int micro = 0;  ///< of this rank
  int round = 0;
  bool has_micro = true;  ///< this rank has a micro-batch in the round
  /** False: this rank has no micro-batch in the round, or not the block, or has run the pass
   * before, and moves what the others need. */
  bool runs = true;
  /** The gradients wait where this backward leaves them, until ranks exchange them in a later pass
   * of the same round. */
  bool waits = false;
  int ran_in = -1;  ///< the pass that ran before and waits for this one; -1: there is none
};

/** A port that a pass uses. */
struct UsedPort {
  int port = -1;  ///< index into BlockShape::ports
  int value = -1;
};
/** The ports that a pass reads and that it writes; those that it changes in place are in both. */
std::vector<UsedPort> ports_read(const StepShape& shape, const BlockPass& pass);
std::vector<UsedPort> ports_written(const StepShape& shape, const BlockPass& pass);

/** A rank's passes of a step in all rounds; without `trains` the forward passes alone. Where there
 * are several stages they are all passes of the rank's replica, in the order in which the stages
 * begin them. */
std::vector<BlockPass> passes_of(const StepShape& shape,
                                 const Rounds& rounds,
                                 int rank,
                                 bool trains);

/** A value that goes from the rank whose pass has written it to one that reads it. */
struct PassedValue {
  int value = -1;
  int from = 0, to = 0;  ///< ranks
};
/** By pass: the values that go from rank to rank after it, of its micro-batch. */
std::vector<std::vector<PassedValue>> values_passed(const StepShape& shape,
                                                    std::span<const BlockPass> passes);

}  // namespace ferry
