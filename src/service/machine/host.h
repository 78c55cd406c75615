#pragma once
// The host as `ferry doctor` shows it: processor, limits, disk, system. Free memory and cgroups are
// src/base/process/host_memory.h's.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ferry::service {

struct Host {
  std::string cpu;           // "AMD EPYC 7763 64-Core Processor"
  int n_cores = 0;           // physical; 0: not told
  int n_threads = 0;         // hardware threads this process may run on
  std::string distribution;  // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;        // "6.1.0-25-amd64"
  bool is_wsl = false;
  int64_t swap_total_bytes = 0;
  int64_t swap_free_bytes = 0;
  std::string huge_pages;  // transparent ones: "always", "madvise", "never"; empty: not told
  std::optional<int64_t> memlock_limit_bytes;  // nullopt: unlimited
  int64_t disk_total_bytes = 0;                // of the current directory's file system
  int64_t disk_free_bytes = 0;                 // for this user
};

/** `root` holds proc/, sys/ and etc/ (tests give another); limits, threads and disk are this
 * process's. Never throws. */
Host read_host(const std::filesystem::path& root = "/");

}  // namespace ferry::service
