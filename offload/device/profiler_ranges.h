#pragma once
// Names what the calling thread does for a profiler that listens (Nsight Systems): NVTX ranges in
// the domain "ferry". Nothing in a build without CUDA.

namespace ferry {

/** True where this process runs under such a profiler: without one no names are made. */
bool profiler_listens();

/** Names the work that the thread does while this lives. */
class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace ferry
