#pragma once
// How many threads are worth starting.

namespace ferry {

/** Hardware threads that the calling thread may run on: fewer than the machine has under taskset,
 * in a container or a batch system's share of a node. */
int n_usable_threads();

}  // namespace ferry
