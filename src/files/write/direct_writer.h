#pragma once
// Large runs of bytes written past the page cache (O_DIRECT), so that a checkpoint takes no more
// memory of the training beside it than its buffer: gathered in page-aligned slots, whole pages go
// straight to the disk, what is left at either end of a run through the cache. AtomicFile owns one
// where it writes directly.

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/files/write/write_behind.h"

namespace ferry {

/** Fills memory, given in parts that lie end to end in the file. */
using FillParts = std::function<void(std::span<const std::span<std::byte>> parts)>;

/** One file being written.
 *
 *   DirectWriter writer(path, fd, behind);
 *   writer.fill(offset, n_bytes, [&](auto parts) { ... });  // as often as it takes
 *   if (const int code = writer.finish()) ...               // all is written, or why not
 */
class DirectWriter {
 public:
  /** The unit of offsets, lengths and addresses under O_DIRECT, on every disk in use.
   */
  static constexpr int64_t kPage_bytes = 4096;

  /** `file` is open as `cached`. Where the file system knows no O_DIRECT, everything goes through
   * the cache. */
  DirectWriter(const std::filesystem::path& file, int cached, WriteBehind& behind);
  /** Data that was not finished need not be written; nothing is under way any more. */
  ~DirectWriter();
  DirectWriter(const DirectWriter&) = delete;
  DirectWriter& operator=(const DirectWriter&) = delete;

  /** The next n_bytes of a run, or, at any other offset, the first of a new one: `fill_parts` is
   * called once or more, for all of them in order. The errno of a failure so far, or 0; nothing is
   * filled after a failure. */
  int fill(int64_t offset_bytes, int64_t n_bytes, const FillParts& fill_parts);
  /** Puts what is there of the run on its way to the disk. */
  void end_run();
  /** Ends the run; all is with the disk or its cache. The errno of the first failure, or 0. */
  int finish();
  /** For tests: whether the file system takes direct writes. */
  bool is_direct() const { return is_direct_; }

 private:
  /** Pages of the file from `base_bytes` on, of which [begin, end) is filled. */
  struct Piece {
    int64_t base_bytes = 0, begin_bytes = 0, end_bytes = 0;
    std::vector<std::byte*> slots;
  };
  /** The piece's bytes of [begin, end), by slot. */
  static std::vector<std::span<std::byte>> parts_of(const Piece& piece,
                                                    int64_t begin_bytes,
                                                    int64_t end_bytes);
  void hand_over();
  void write_handed_over(const Piece& piece);
  int write(const Piece& piece);
  int write_pages(const Piece& piece, int64_t begin_bytes, int64_t end_bytes);
  int write_cached(const Piece& piece, int64_t begin_bytes, int64_t end_bytes);

  UniqueFd direct_;
  int cached_;
  std::atomic<bool> is_direct_;
  WriteBehind& behind_;
  Piece open_;
  std::mutex mutex_;
  std::condition_variable piece_ended_;
  int n_under_way_ = 0;           // guarded
  std::atomic<int> failure_ = 0;  // the first
};

/** pwrite until all is written. The errno of a failure, or 0. */
int write_all(int fd, int64_t offset_bytes, std::span<const std::byte> bytes);

}  // namespace ferry
