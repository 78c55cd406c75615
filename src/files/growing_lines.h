#pragma once
// Lines of a text file that another process may be writing: metrics.jsonl, train.log. No more of
// the file than two lines is in memory at once, and nothing here waits for the writer.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/files/file_stamp.h"

namespace ferry {

/** Longer than any line of a run; what is longer is left out. */
inline constexpr size_t kLine_bytes_max = size_t{64} << 10;

/** Takes a line without its end, and the place of its first byte in the file. */
using UseLine = std::function<void(std::string_view line, int64_t offset)>;

/** Cuts pieces of a text into lines. */
class LineSplitter {
 public:
  /** The bytes begin at this place of the file, which is the beginning of a line. */
  explicit LineSplitter(int64_t offset = 0) : line_begin_(offset) {}

  /** The next bytes: calls `use` with every line that they end. */
  void add(std::string_view piece, const UseLine& use);
  /** The bytes of a line that has no end yet; empty of one that is too long. */
  std::string_view rest() const { return rest_; }
  /** The place of its first byte. */
  int64_t rest_begin() const { return line_begin_; }

 private:
  int64_t line_begin_;
  std::string rest_;
  size_t n_skipped_ = 0;  ///< bytes of a line that is too long so far
};

/** Calls `use` with every line from this place on, which is the beginning of one, until it gives
 * false; also with the last one where it has no end. Throws as open_plain_file() and read_some().
 */
void read_lines(const std::filesystem::path& file,
                int64_t offset,
                const std::function<bool(std::string_view line, int64_t offset)>& use);

/**
 * Follows a file as it grows, from its first line on. A line comes once it has its end. Where the
 * file is cut, replaced, or cut and written anew, that is noticed, and its lines come again.
 *
 *     LineFollower follower(run / "metrics.jsonl");
 *     for (;; wait()) {
 *       const LineFollower::Growth growth = follower.follow(kMiB, use);
 *       if (growth.is_anew) forget_all_lines();
 *     }
 *
 * For one thread.
 */
class LineFollower {
 public:
  explicit LineFollower(std::filesystem::path file) : path_(std::move(file)) {}

  struct Growth {
    size_t n_bytes = 0;      ///< read by this call
    bool is_anew = false;    ///< what came before is void; this call read nothing
    bool is_behind = false;  ///< there is more to read
    bool is_there = false;   ///< the file; lines of one that went away stay as they are
    std::string trouble;     ///< why it cannot be read; empty: it can, or is not there
  };
  /** Reads what came since, at most so many bytes: a long file takes seconds at first. One look at
   * the file's entry where nothing came; nothing stays open, so that hundreds may be followed.
   * Throws only what `use` throws: then lines of that call are lost. */
  Growth follow(size_t bytes_max, const UseLine& use);

  const std::filesystem::path& path() const { return path_; }

 private:
  /** True where the file, open now, begins with all that was read. */
  bool goes_on(int fd, const FileStamp& now) const;
  void read(int fd, size_t bytes_max, const UseLine& use, Growth& growth);

  std::filesystem::path path_;
  std::optional<FileStamp> seen_;  ///< when it was read last
  int64_t n_read_ = 0;             ///< of its bytes
  std::string last_;               ///< the last of them, by which a file that was cut is known
  LineSplitter splitter_;
};

}  // namespace ferry
