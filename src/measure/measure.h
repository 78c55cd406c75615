#pragma once
// Measures what a machine can do, as a run would use it: the same kernels, queues and pinned
// memory. `ferry-trainer bench` calls measure() and prints what it gives; `ferry doctor` and `ferry
// bench` start that as a child process. The GPU half is left out where there is no usable GPU, a
// part that cannot be measured (memory is short, the disk takes no direct writes) is named and left
// out.
//
//   const Measured measured = measure(all_parts(), {});
//   store_machine_profile(measured.profile);

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/bytes.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::measure {

enum class Part : uint8_t { memory, update, dram, copy, gpu, gemm, attention, disk };
std::string_view name_of(Part part);
/** In the order they are measured: memory first, before the others use any. */
std::span<const Part> all_parts();

/** AdamW's segments, larger than any cache, and both ends of copies. */
inline constexpr int64_t kHostBytes_default = 13 * kGiB / 8;

struct MeasureOptions {
  bool uses_gpu = true;  ///< where there is one
  double seconds = 16;   ///< about what all parts together may take, start-up apart
  /** A part that has taken so much more than twice its share (others compute too) leaves the rest
   * of its figures out. */
  double patience_s = 3;
  int64_t host_bytes_max = kHostBytes_default;
  int64_t disk_bytes_max = kGiB;
  std::filesystem::path directory = ".";                    ///< whose disk is measured
  std::function<void(std::string_view part)> on_part = {};  ///< before each
};

struct Measured {
  MachineProfile profile;
  std::vector<std::string> skipped;  ///< what was left out and why, one sentence each
  std::string gpu_trouble;           ///< why no GPU can be used; empty where one can
  int64_t gpu_free_bytes = 0;        ///< once this process had its context; 0: no GPU
};

Measured measure(std::span<const Part> parts, const MeasureOptions& options);

}  // namespace ferry::measure
