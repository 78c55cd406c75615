#pragma once
// The host memory that this process may have (free memory and the cgroup's limit), for the planner,
// readers of files and `ferry doctor`, and the host memory that it has taken, for reports.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace ferry {

struct HostMemory {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;  ///< MemAvailable
  /** v2 or v1: of this process's control group or one above it, the one that leaves least. */
  std::optional<int64_t> cgroup_limit_bytes;
  int64_t cgroup_used_bytes = 0;

  /** The smaller of what is available and what the cgroup leaves. A cgroup's limit is trusted over
   * MemTotal: some virtual machines grow as memory is touched. */
  int64_t free_bytes() const;
  /** The bytes that a run may plan with: what is free, less 5 % or 512 MiB. */
  int64_t budget_bytes() const;
};

/** `root` holds proc/ and sys/ (tests give another). */
HostMemory read_host_memory(const std::filesystem::path& root = "/");

/** A value of this process from /proc/self/status: VmHWM is the most that it has held in memory,
 * VmSwap is what of it is swapped out. 0 where there is no such line. */
int64_t process_status_bytes(std::string_view name);

}  // namespace ferry
