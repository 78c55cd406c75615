// Stands in for cuda_profiler_ranges.cpp in a build without CUDA.

#include "offload/profiler_ranges.h"

namespace ferry {

void push_profiler_range(const char*) {}
void pop_profiler_range() {}

}  // namespace ferry
