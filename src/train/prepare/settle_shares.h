#pragma once
// The shares of a step that unlike GPUs get, by the time that each takes for the same passes. They
// are settled before the plan, which counts them.

#include "src/train/prepare/job.h"

namespace ferry {

/** Times the ranks of a training where it is asked for, or where GPUs are of several models and
 * nobody has said how fast they are. The shares become settings of the run, which a resumed one
 * keeps. The ranks meet where they have not. Needs the model's table and the length of texts. */
void settle_shares(Job& job);

}  // namespace ferry
