#pragma once
// A file that only grows, for logs that others follow while they are written: metrics.jsonl,
// TensorBoard's events.

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "src/base/unique_fd.h"

namespace ferry {

/** Failures are as those of open_owned_file(): a file is not written through a link. */
class AppendOnlyFile {
 public:
  /** Opens the file, or makes it, and cuts it to its first n_kept_bytes. */
  AppendOnlyFile(std::filesystem::path path, int64_t n_kept_bytes);

  /** Written when it returns: safe from the end of the process, though not from a power cut. A
   * failure leaves nothing of it, and it may be tried again. */
  void append(std::string_view bytes);
  /** Until all that was appended is safe on disk. */
  void sync();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  UniqueFd fd_;
  int64_t n_bytes_;
};

}  // namespace ferry
