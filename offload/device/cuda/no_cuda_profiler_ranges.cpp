// Stands in for cuda_profiler_ranges.cpp in a build without CUDA.

#include "offload/device/profiler_ranges.h"

namespace ferry {

bool profiler_listens() {
  return false;
}
ProfilerRange::ProfilerRange(const char*) {}
ProfilerRange::~ProfilerRange() = default;

}  // namespace ferry
