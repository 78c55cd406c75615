#pragma once
// What every kind of Comm must do, checked by each rank of a group in its own thread or process.

#include "src/comm/comm.h"

namespace ferry {

/** Each call with each rank in each part; EXPECTs that fail name the rank. All ranks call it. */
void check_every_call(Comm& comm);

/** Messages from none to `n_bytes_max` bytes, around in a ring, in both directions at once. */
void check_sizes(Comm& comm, size_t n_bytes_max);

/** Two groups, each of which makes many calls while the other does; their ranks and sums. */
void check_groups(Comm& comm);

/** What sum() gives, added in this thread: for a run of `world` ranks, `values_of_rank` each. */
std::vector<double> values_of_rank(int rank);
std::vector<double> serial_sum(int world);

}  // namespace ferry
