#pragma once
// The last choice before a training is what it is: where plans are promised nearly the same time, a
// step of each is timed (src/plan/plan_choice.h), and the fastest becomes the run's. It happens
// before anything is written to the run's directory, and leaves nothing of it but what the
// machine's profile learns.

#include "src/train/prepare/job.h"

namespace ferry {

/** Ends the open plan of a new training, and fixes its identity. Says on standard error that it
 * measures. Weights are loaded for each plan, and no random number of the run is drawn. A plan that
 * turns out not to fit is no longer one to choose; other errors are thrown. */
void settle_plan(Job& job);

}  // namespace ferry
