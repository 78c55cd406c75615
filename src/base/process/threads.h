#pragma once
// How many threads are worth starting.

namespace ferry {

/** Hardware threads that the calling thread may run on: fewer than the machine has under taskset,
 * in a container or a batch system's share of a node. */
int n_usable_threads();

/** For programs that this one starts or becomes: LibTorch's threads wait spinning, by default so
 * long that two programs on the same cores spend their time on it. OpenMP reads the variable as it
 * is loaded; one that the user has set stays. */
void limit_spinning_of_children();

}  // namespace ferry
