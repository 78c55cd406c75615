#pragma once
// The list of a step, made before step 1: which block is fetched into which slot, run,
// sent, updated, in what order and after what. A pure function of the step's shape and its layout:
// no device, no memory.

#include "offload/step/action.h"
#include "offload/step/layout.h"
#include "offload/step/step_shape.h"

namespace ferry {

/** The time when blocks of the host are updated. Clipping and loss scaling need all gradients
 * first. */
enum class UpdateOrder : uint8_t {
  after_decision,   ///< in the order the next forward needs them, under that forward
  as_grads_arrive,  ///< under the backward, but for BlockShape::updates_late and tied blocks
};

/** The list of a training step with `n_micro` micro-batches, of all ranks together; a rank has at
 * most shape.n_micro_max of them. `each_decides`:
 * a block whose gradients are not finite is not updated, whatever others do; always so where blocks
 * are updated as gradients arrive. */
StepList make_training_list(const StepShape& shape,
                            const Layout& layout,
                            int n_micro,
                            UpdateOrder order = UpdateOrder::after_decision,
                            bool each_decides = false);
/** Forward only, `n_rounds` micro-batches of each replica: fetch, forward, losses to the host.
 * Without `fetches_own_slots` the device still has the weights that stay there, since no step was
 * taken after the last list. */
StepList make_evaluation_list(const StepShape& shape,
                              const Layout& layout,
                              bool fetches_own_slots = true,
                              int n_rounds = 1);

}  // namespace ferry
