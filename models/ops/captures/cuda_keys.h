#pragma once
// Random keys into GPU memory, where the kernels of a CUDA graph read them. A build with CUDA alone
// has it.

#include <cstdint>

#include "models/core/random_sites.h"

namespace ferry::ops::cuda {

/** The keys that a launch's arguments hold: one for each random operation of a block. */
inline constexpr int kKeys_max = kRandomSites_max;
/** to[i] = keys[i], 0 < n <= kKeys_max; queued on `stream`, a cudaStream_t. */
void store_keys(void* stream, const uint64_t* keys, int n, uint64_t* to);

}  // namespace ferry::ops::cuda
