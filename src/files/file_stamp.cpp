#include "src/files/file_stamp.h"

#include <sys/stat.h>

namespace ferry {

FileStamp file_stamp(const struct ::stat& status) {
  constexpr int64_t kNs_per_s = 1'000'000'000;
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .n_bytes = status.st_size,
          .changed_ns = status.st_ctim.tv_sec * kNs_per_s + status.st_ctim.tv_nsec};
}

std::optional<FileStamp> file_stamp(const std::filesystem::path& path) {
  struct ::stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return file_stamp(status);
}

}  // namespace ferry
