#pragma once
// Decides, without clipping, which updates wait for the next forward pass
// (BlockShape::updates_late). Private to src/plan.

#include "src/plan/plan.h"

namespace ferry {

/** A lower bound of a plan's step time with any choice of late updates: the time of its busiest
 * resource. Late updates shorten the end of the step by their own time, and by no more. */
double least_seconds_with_late_updates(const Plan& plan);

/** Leaves a share of the updates for the next forward pass where that is faster. The late updates
 * are spread over the blocks, as the forward pass needs them. The best share depends on the speed
 * of the updates. That speed changes with other work on the machine, and was seen a fifth lower
 * than the profile's: a share must do for both. */
void choose_late_updates(const ModelTable& model, const PlanRequest& request, Plan& plan);

}  // namespace ferry
