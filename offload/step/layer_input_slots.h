#pragma once
// Decides which slot holds which layer input at each pass of a step, for shapes whose layer inputs
// may live in host memory. Passes are known ahead. So an output that has to leave its slot before
// its last read is known when it is written, and can be sent at once, beside the forward pass that
// reads it. A pure function of shape and passes; the pager makes actions of it.

#include <span>
#include <vector>

#include "offload/step/passes.h"

namespace ferry {

/** The part of a pass in it. A slot is -1 for an output that lies in none. */
struct LayerInputPass {
  int input_slot = -1;
  int output_slot = -1;
  bool fetches_input = false;   ///< from the host, into its slot
  bool sends_output = false;    ///< to the host: it is read again after it left its slot
  bool releases_input = false;  ///< nobody reads it after this pass
};

/** The slots at each pass. A slot is taken from an output that is not read again, else from the one
 * that is read last. */
std::vector<LayerInputPass> plan_layer_inputs(const StepShape& shape,
                                              std::span<const BlockPass> passes,
                                              int n_micro);

}  // namespace ferry
