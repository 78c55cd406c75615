#pragma once
// Names what the calling thread does for a profiler that listens (Nsight Systems): NVTX ranges in
// the domain "ferry". Nothing in a build without CUDA; next to nothing where nobody listens.

namespace ferry {

/** Ranges of a thread nest: each pop ends the one begun last. */
void push_profiler_range(const char* name);
void pop_profiler_range();

}  // namespace ferry
