#pragma once
// The pulse of a run's ranks, and the end of the process where one of them is lost.

#include <memory>

#include "src/comm/pulse.h"

namespace ferry {

/** All ranks call it, and keep it while they work together. A process that has lost a rank says so
 * and leaves with exit code 5; so does the first one where a step stands on all ranks. A rank is
 * waited for a twentieth of the time that a hung process has, and a step a tenth of it, so that the
 * rank is named within a minute. */
std::unique_ptr<Pulse> start_pulse(Comm& comm);

}  // namespace ferry
