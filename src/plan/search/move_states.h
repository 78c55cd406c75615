#pragma once
// Moves optimizer states, then weights, and then gradients to a drive where the host's memory is
// too small for them. Private to src/plan.

#include "src/plan/search/fill.h"

namespace ferry {

/** True where a plan of the request may put anything on NVMe. */
bool may_use_nvme(const PlanRequest& request);

/** Moves the states of as few blocks as the host's memory asks for, or of all where the request
 * does, and chooses the window through which they pass. They are spread between the blocks whose
 * states stay, so that CPU and drive are both busy. Where that is not enough, and where nothing is
 * trained, the weights of as few blocks as needed follow, and after these the gradients of as few
 * as needed, but for tensors that blocks share. Gradients that arrive more than once a step stay.
 * Returns what is lacking then. */
Shortfall move_states(const PlanRequest& request, Plan& plan, Search& search);

}  // namespace ferry
