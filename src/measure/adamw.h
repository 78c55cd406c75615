#pragma once
// AdamW in host memory, over threads, alone and beside copies; and what DRAM gives a plain sum.
// Private to src/measure.

#include "src/measure/bench.h"

namespace ferry::measure {

/** Host traffic of a parameter: bf16 gradient and weight, fp32 m, v and master read and written. */
inline constexpr int64_t kAdamwTraffic_bytes = 28;

/** By threads: 1, 2, 4, ... and all of them, or all only. `seconds` for all rows together. */
std::vector<AdamwRate> measure_adamw(Bench& bench, double seconds, bool only_all_threads = false);

/** Bytes per second of a += b with all threads, reads and writes counted. */
double measure_dram(Bench& bench, double seconds);

}  // namespace ferry::measure
