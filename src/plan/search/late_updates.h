#pragma once
// Without clipping: which updates wait for the next forward (BlockShape::updates_late). Private to
// src/plan.

#include "src/plan/plan.h"

namespace ferry {

/** What no choice of late updates makes a plan's step shorter than: its busiest resource's time;
 * and what is late leaves the end of the step, and no more than that. */
double least_seconds_with_late_updates(const Plan& plan);

/** Leaves a share of the updates for the next forward, where that is faster: spread over the
 * blocks, as the forward needs them. Which share is best depends on the speed of the updates, which
 * changes with what else a machine does and was seen a fifth lower than the profile's: a share must
 * do for both. */
void choose_late_updates(const ModelTable& model, const PlanRequest& request, Plan& plan);

}  // namespace ferry
