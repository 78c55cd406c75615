#pragma once
// Which layer-input slot holds which block's output at each pass of a step, for shapes whose
// layer inputs may live in host memory. Passes are known ahead, so what has to leave its slot
// before its last read is known when it is written and can be sent at once, beside the forward that
// reads it. A pure function of shape and passes; the pager makes actions of it.

#include <span>
#include <vector>

#include "offload/step/passes.h"

namespace ferry {

/** A pass's part in it. Slots are -1 for what does not lie in layer-input slots. */
struct LayerInputPass {
  int input_slot = -1;
  int output_slot = -1;
  bool fetches_input = false;   ///< from the host, into its slot
  bool sends_output = false;    ///< to the host: it is read again after it left its slot
  bool releases_input = false;  ///< nobody reads it after this pass
};

/** For each pass. A slot is taken from what is not read again, else from what is read last. */
std::vector<LayerInputPass> plan_layer_inputs(const StepShape& shape,
                                              std::span<const BlockPass> passes,
                                              int n_micro);

}  // namespace ferry
