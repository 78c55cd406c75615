#pragma once
// Calls that a process makes to its disk under one directory, in the order in which they happened:
// written to a log by disk_log.cpp, which stands between a program and the C library, and read by
// lossy_disk.h, which makes of them what a power cut leaves. A test links the library and says when
// to begin; another program has it preloaded and gets both paths from the environment.

#include <cstdint>

namespace ferry::test {

enum class DiskCall : uint32_t {
  open,      // path, fd, flags
  close,     // fd
  write,     // fd, at, the bytes
  truncate,  // fd, at: the size
  allocate,  // fd, at: the size that it has at least
  sync,      // fd
  make_directory,
  rename,  // path to other
  exchange,
  remove,
  mark  // path: what the test says of this moment
};

/** One call; the path, the other path and the bytes follow it in the log. Paths are absolute. */
struct DiskRecord {
  DiskCall call;
  int32_t fd, flags;
  uint32_t n_path, n_other, n_bytes;
  int64_t at;
};

}  // namespace ferry::test

extern "C" {
/** From now on calls under `root` are logged to `file`, which must lie elsewhere. Also done at the
 * start of a process where FERRY_DISK_LOG_ROOT and FERRY_DISK_LOG are set. */
void ferry_disk_log_begin(const char* root, const char* file);
void ferry_disk_log_mark(const char* text);
void ferry_disk_log_end();
}
