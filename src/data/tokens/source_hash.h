#pragma once
// The content of a dataset's files as one number, so that tokens which were kept of it are known
// again: also after the files were moved or copied, and not after one of them was changed. Files
// that are as they were when they were read last are not read again.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/files/file_stamp.h"

namespace ferry {

class SourceFiles {
 public:
  /** Files of a dataset; of a folder all files in it. */
  explicit SourceFiles(std::span<const std::filesystem::path> files);

  int64_t n_bytes() const;
  /** A hash of contents, and within a folder of names. What is known of the files is kept in
   * `directory` until the next time; empty: nowhere. `progress` is told the bytes that were read.
   * Error(data) where a file cannot be read. */
  uint64_t hash(const std::filesystem::path& directory,
                const std::function<void(int64_t n_bytes)>& progress) const;
  /** Error(data) that names a file which is not as it was when this was made. */
  void check_unchanged() const;

 private:
  struct File {
    std::filesystem::path path;
    std::string name;  // in its folder; empty: it stands alone
    FileStamp stamp;
  };
  std::vector<File> files_;
};

}  // namespace ferry
