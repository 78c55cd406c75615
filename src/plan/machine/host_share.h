#pragma once
// The share that a rank has of a host whose ranks all do the same at the same time: so many of the
// cores, and of what the memory gives them and the GPUs' copies together. No torch, no device.

#include "src/plan/machine/machine_profile.h"

namespace ferry {

/** Bytes a second that the host's memory gives cores and copies together, as far as the profile
 * tells: the most that was seen. 0: not known. */
double host_memory_rate(const MachineProfile& machine);

/** The figures of a host as one of its `n_ranks` ranks meets them. Updates by threads count those
 * of the rank, without the thread that submits a GPU's work. The rate of the host's memory
 * (`dram_bytes_per_s`) is the rank's part of host_memory_rate(). */
MachineProfile share_of_host(const MachineProfile& machine, int n_ranks, bool gpu);

}  // namespace ferry
