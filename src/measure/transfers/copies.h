#pragma once
// Copies between pinned host memory and the GPU, by size, each way and both. Private to
// src/measure.

#include "src/measure/bench.h"

namespace ferry::measure {

/** Copies queued one behind the other, as the pager's are. `seconds` for all sizes together. */
std::vector<CopyRate> measure_copies(Bench& bench,
                                     std::span<const int64_t> sizes_bytes,
                                     double seconds);

}  // namespace ferry::measure
