#pragma once
// Names what the calling thread does for a profiler that listens (Nsight Systems): NVTX ranges in
// the domain "ferry". Nothing in a build without CUDA.

namespace ferry {

/** Whether this process runs under one: names are not made for nobody. */
bool profiler_listens();

/** What the thread does while this lives. */
class ProfilerRange {
 public:
  explicit ProfilerRange(const char* name);
  ~ProfilerRange();
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace ferry
