#pragma once
// Which boundary slot holds which block's output at each turn of a step, for shapes whose
// boundaries may live in host memory. Turns are known ahead, so what has to leave its slot before
// its last read is known when it is written and can be sent at once, beside the forward that reads
// it. A pure function of shape and turns; the pager makes actions of it.

#include <span>
#include <vector>

#include "offload/step/turns.h"

namespace ferry {

/** A turn's part in it. Slots are -1 for what does not lie in boundary slots. */
struct BoundaryTurn {
  int input_slot = -1;
  int output_slot = -1;
  bool fetches_input = false;   ///< from the host, into its slot
  bool sends_output = false;    ///< to the host: it is read again after it left its slot
  bool releases_input = false;  ///< nobody reads it after this turn
};

/** For each turn. A slot is taken from what is not read again, else from what is read last. */
std::vector<BoundaryTurn> plan_boundaries(const StepShape& shape,
                                          std::span<const Turn> turns,
                                          int n_micro);

}  // namespace ferry
