#include "src/plan/host_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "src/base/bytes.h"

namespace ferry {
namespace {

std::optional<int64_t> read_number(const std::filesystem::path& file) {
  std::ifstream in(file);
  int64_t value = 0;
  if (in >> value) return value;
  return std::nullopt;  // absent, or "max"
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
  constexpr int64_t kUnlimited_bytes = int64_t{1}
                                       << 60;  // cgroup v1 writes a huge number for "no limit"
  struct Version {
    const char *limit, *used;
  };
  for (Version v : {Version{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"},
                    Version{"sys/fs/cgroup/memory/memory.limit_in_bytes",
                            "sys/fs/cgroup/memory/memory.usage_in_bytes"}}) {
    auto limit = read_number(root / v.limit);
    if (!limit || *limit > kUnlimited_bytes) continue;
    memory.cgroup_limit_bytes = limit;
    memory.cgroup_used_bytes = read_number(root / v.used).value_or(0);
    break;
  }
  return memory;
}

int64_t HostMemory::budget_bytes() const {
  int64_t free_bytes = available_bytes;
  if (cgroup_limit_bytes) {
    const int64_t left = *cgroup_limit_bytes - cgroup_used_bytes;
    free_bytes = *cgroup_limit_bytes > total_bytes ? left : std::min(free_bytes, left);
  }
  return std::max<int64_t>(0, free_bytes - std::max(free_bytes / 20, 512 * kMiB));
}

}  // namespace ferry
