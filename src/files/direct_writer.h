#pragma once
// Large runs of bytes written past the page cache (O_DIRECT), so that a checkpoint takes neither
// the processor nor the memory of the training beside it: gathered in a page-aligned buffer, whole
// pages go straight to the disk, what is left at either end of a run through the cache. AtomicFile
// owns one where it was given a buffer.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "src/files/unique_fd.h"

namespace ferry {

class DirectWriter {
 public:
  /** What O_DIRECT wants offsets, lengths and addresses to be multiples of, on every disk in use.
   */
  static constexpr int64_t kPage_bytes = 4096;

  /** `file` is open as `cached`. The buffer starts on a page and is a multiple of pages; writers
   * whose runs do not overlap in time may share it. Where the file system knows no O_DIRECT,
   * everything goes through the cache. */
  DirectWriter(const std::filesystem::path& file, int cached, std::span<std::byte> buffer);

  /** Goes on with a run, or, after end_run(), begins one at any offset. The errno of a failure, or
   * 0. */
  int write(int64_t offset_bytes, std::span<const std::byte> bytes);
  /** All of the run is with the disk or its cache. The errno of a failure, or 0. */
  int end_run();
  /** For tests: whether the file system takes direct writes. */
  bool is_direct() const { return static_cast<bool>(direct_); }

 private:
  int write_out(bool is_end);
  int write_pages(int64_t begin, int64_t end);

  UniqueFd direct_;
  int cached_;
  std::span<std::byte> buffer_;
  int64_t base_ = 0;             // offset in the file of the buffer's start, whole pages
  int64_t begin_ = 0, end_ = 0;  // of what the buffer holds, in the file
  bool in_run_ = false;
};

/** pwrite until all is written. The errno of a failure, or 0. */
int write_all(int fd, int64_t offset_bytes, std::span<const std::byte> bytes);

}  // namespace ferry
