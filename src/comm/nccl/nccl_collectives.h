#pragma once
// NCCL's own collectives between GPUs, for `ferry bench nccl`.

#include <cstdint>
#include <memory>
#include <span>

#include "src/comm/collectives.h"

namespace ferry {

/** The GPUs that this process sees; 0 in a build without NCCL. */
int n_gpus_for_nccl();
/** Each of these GPUs reaches the memory of each other one, and NCCL may use that. */
bool have_peer_access(std::span<const int> gpus);

/** In memory of this rank's GPU. Meets the other ranks of `comm`, which outlives it. Throws
 * Error(machine) where NCCL is not there, or where the ranks do not find each other. */
std::unique_ptr<Collectives> make_nccl_collectives(Comm& comm, int gpu);

}  // namespace ferry
