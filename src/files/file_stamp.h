#pragma once
// Tells whether a file is as it was, without reading it.

#include <cstdint>
#include <filesystem>
#include <optional>

struct stat;

namespace ferry {

/** The system's facts about a file. They change with every change of its content; two changes
 * within a tick of the system's clock (some ms) may look like one. */
struct FileStamp {
  uint64_t device = 0, inode = 0;
  /** The time is the system's own: that of the last change of content can be set to any value. */
  int64_t n_bytes = 0, changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
  bool is_of_same_file(const FileStamp& other) const {
    return device == other.device && inode == other.inode;
  }
};

FileStamp file_stamp(const struct ::stat& status);
/** nullopt, and errno, where it cannot be looked at. */
std::optional<FileStamp> file_stamp(const std::filesystem::path& path);

}  // namespace ferry
