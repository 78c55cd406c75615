#pragma once
// The time of a step in the middle of a run, from steps that change nothing.

#include <span>

#include "src/engine/session.h"

namespace ferry {

/** Seconds of a step of these micro-batches where steps follow each other: the updates of each go
 * on under the next. Some are rehearsed before, for kernels are loaded, graphs recorded and clocks
 * settled; then the median of some. Of steps that take seconds it is one before and one that is
 * timed. */
double time_of_step(Session& session, std::span<const HostBatch> micro_batches);

}  // namespace ferry
