#pragma once
// The work of a GPU beside products and attention: element-wise kernels, launches, AdamW. Private
// to src/measure.

#include "src/measure/bench.h"

namespace ferry::measure {

/** Fills memory_bytes_per_s, launch_s and update_params_per_s. */
void measure_gpu(Bench& bench, double seconds, GpuProfile& gpu);

}  // namespace ferry::measure
