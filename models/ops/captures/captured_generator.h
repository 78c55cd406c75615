#pragma once
// LibTorch's random generator while work is recorded into a CUDA graph: its kernels then read seed
// and offset from GPU memory, which the graph fills itself each time it runs.

#include <cstdint>

namespace ferry::ops::gpu {

/** Prepares the process for captures. Call it once, before the first of them. */
void prepare_captures();

/** Inside a capture (at::cuda::CUDAGraph) on the current stream: the default generator's next draw
 * is that of the key at `key_at` (GPU memory), from offset 0. */
void seed_captured_generator(const uint64_t* key_at);

}  // namespace ferry::ops::gpu
