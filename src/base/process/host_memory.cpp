#include "src/base/process/host_memory.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "src/base/bytes.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

std::optional<int64_t> read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // absent, or "max"
}

/** Version 2's names, then version 1's, which writes a huge number for "no limit". */
std::optional<int64_t> limit_of(const fs::path& group) {
  constexpr int64_t kUnlimited_bytes = int64_t{1} << 60;
  for (const char* name : {"memory.max", "memory.limit_in_bytes"})
    if (const auto limit = read_number(group / name); limit && *limit <= kUnlimited_bytes)
      return limit;
  return std::nullopt;
}

/** The bytes in use. They leave out pages of files that nobody has read for a while, which make
 * room when asked. */
int64_t used_of(const fs::path& group) {
  int64_t used = 0, idle = 0;
  for (const char* name : {"memory.current", "memory.usage_in_bytes"})
    if (const auto bytes = read_number(group / name)) used = *bytes;
  std::ifstream stat(group / "memory.stat");
  std::string key;
  for (int64_t bytes; stat >> key >> bytes;)
    if (key == "inactive_file" || key == "total_inactive_file") idle = bytes;
  return std::max<int64_t>(0, used - idle);
}

/** Directories of the control groups whose limits bind this process: its own, which a service or a
 * batch system made, and all above it (cgroups(7)). */
std::vector<fs::path> groups_of_process(const fs::path& root) {
  const fs::path v2 = root / "sys/fs/cgroup", v1 = v2 / "memory";
  std::vector<fs::path> groups = {v2, v1};
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {  // "0::/user.slice/a.scope", "4:memory:/job"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_v2 = controllers == ",,";
    if (!is_v2 && controllers.find(",memory,") == std::string::npos) continue;
    fs::path group = is_v2 ? v2 : v1;
    for (const fs::path& part : fs::path(line.substr(second + 1)).relative_path())
      groups.push_back(group /= part);
  }
  return groups;
}

}  // namespace

HostMemory read_host_memory(const std::filesystem::path& root) {
  HostMemory memory;
  std::ifstream meminfo(root / "proc/meminfo");
  std::string key, unit;
  for (int64_t kib; meminfo >> key >> kib; std::getline(meminfo, unit)) {
    if (key == "MemTotal:") memory.total_bytes = kib * kKiB;
    if (key == "MemAvailable:") memory.available_bytes = kib * kKiB;
  }
  for (const fs::path& group : groups_of_process(root)) {
    const std::optional<int64_t> limit = limit_of(group);
    if (!limit) continue;
    const int64_t used = used_of(group);
    if (memory.cgroup_limit_bytes &&
        *memory.cgroup_limit_bytes - memory.cgroup_used_bytes <= *limit - used)
      continue;
    memory.cgroup_limit_bytes = limit;
    memory.cgroup_used_bytes = used;
  }
  return memory;
}

int64_t HostMemory::free_bytes() const {
  if (!cgroup_limit_bytes) return available_bytes;
  const int64_t left = std::max<int64_t>(0, *cgroup_limit_bytes - cgroup_used_bytes);
  return *cgroup_limit_bytes > total_bytes ? left : std::min(available_bytes, left);
}

int64_t HostMemory::budget_bytes() const {
  return std::max<int64_t>(0, free_bytes() - std::max(free_bytes() / 20, 512 * kMiB));
}

int64_t process_status_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name) && line.compare(name.size(), 1, ":") == 0)
      return std::stoll(line.substr(name.size() + 1)) * kKiB;
  return 0;
}

}  // namespace ferry
