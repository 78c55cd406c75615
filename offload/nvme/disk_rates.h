#pragma once
// The rates of a drive: a disk in nameless files, by the patterns in which a step uses it.
// Called by `ferry bench disk` and `ferry doctor`.
//
//   ScratchDisk scratch({"/mnt/nvme"}, 2 * kGiB, {});
//   const double rate = scratch.rate_of(DiskPattern::mixed, 1.0);

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "offload/nvme/open_disk.h"
#include "src/base/unique_fd.h"

namespace ferry {

enum class DiskPattern : uint8_t {
  read,   ///< at rising offsets
  write,  ///< at rising offsets
  mixed,  ///< the optimizer's: extents of one half are read while as many of the other are written
};
inline constexpr std::array kDiskPatterns = {DiskPattern::read, DiskPattern::write,
                                             DiskPattern::mixed};
std::string_view name_of(DiskPattern pattern);

/** A disk in files without names, one in each directory: nobody sees them, and they are gone
 * however this process ends. */
class ScratchDisk {
 public:
  static constexpr double kFill_s_max = 600;

  /** Makes the files and writes to them once; what has not been written after `fill_s` seconds is
   * left out of all patterns. n_bytes is cut to a quarter of what is free, and to whole stripes;
   * the window of the options is the object's own. Transfers go through `window_bytes` of memory
   * in turns, or a little more: in 16 MiB, the least, that memory stays in the processor's caches,
   * and a virtual disk copies faster from there than from a run's slots. Throws as open_disk()
   * does. */
  ScratchDisk(const std::vector<std::filesystem::path>& directories,
              int64_t n_bytes,
              const DiskOptions& options,
              double fill_s = kFill_s_max,
              int64_t window_bytes = 0);

  const FileDisk& disk() const { return *disk_; }
  /** The bytes from the start on that the patterns go over. */
  int64_t n_filled_bytes() const { return n_filled_bytes_; }
  /** From now on the drives are given requests of that size, so many at once each. */
  void use(int64_t request_bytes, int depth);
  /** The paths by which any process of this user opens the files while the object lives. */
  const std::vector<std::filesystem::path>& files() const { return files_; }
  /** Bytes per second that pass, in about so many seconds. */
  double rate_of(DiskPattern pattern, double seconds);
  /** Seconds that flush() takes after some extents were written: the median of so many times. */
  double flush_s(int n_times);

 private:
  void open_nameless(const std::filesystem::path& directory);
  /** Bytes moved. */
  int64_t move(DiskPattern pattern, const std::function<bool(int64_t n_bytes_moved)>& goes_on);

  std::vector<UniqueFd> fds_;
  std::vector<std::filesystem::path> files_;
  int64_t extent_bytes_, n_filled_bytes_ = 0;
  size_t n_extents_;  ///< of the window
  std::unique_ptr<std::byte, void (*)(void*)> memory_;
  std::span<std::byte> window_;
  DiskOptions options_;
  std::unique_ptr<FileDisk> disk_;
};

}  // namespace ferry
