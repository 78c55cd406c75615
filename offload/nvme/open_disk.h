#pragma once
// Makes a Disk of a file in a directory of the user, or of one in each of several. Called by the
// store of blocks, and by what measures a drive.
//
//   const auto disk = open_disk({"/mnt/nvme/run.blocks"}, 64 * kGiB, {.window = pinned});

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "offload/nvme/disk.h"
#include "src/base/bytes.h"

namespace ferry {

struct DiskFaults;

struct DiskOptions {
  int64_t request_bytes = kMiB;  ///< the most that a drive is asked for at once
  int depth = 16;                ///< requests of that size under way at once, for each file
  /** A drive that keeps a transfer for so long has stopped answering: wait() throws, and the disk
   * is of no use any more. */
  std::chrono::milliseconds deadline{60'000};
  /** Memory whose transfers cost less, where the system lets it be registered; other memory will do
   * as well. It outlives the disk. */
  std::span<std::byte> window;
  bool must_exist = false;  ///< no file is made
  /** The files are there and have the bytes. They are neither locked nor written: another process
   * may write to them meanwhile. */
  bool reads_only = false;
  bool uses_io_uring = true;           ///< where it may be used
  const DiskFaults* faults = nullptr;  ///< for tests
};

class FileDisk : public Disk {
 public:
  /** The path of the transfers: "io_uring, registered buffers", "io_uring", "pread and pwrite". */
  virtual std::string transport() const = 0;
};

/** The most drives that share a disk. */
inline constexpr size_t kDiskFiles_max = 16;

/** Opens the files, makes those that are not there, and reserves room for n_bytes (a multiple of
 * kDiskAlignment_bytes) in all of them; what they hold stays. Each is locked until the disk goes.
 * Several share the bytes in stripes: they are given in the same order each time. On an error no
 * byte was written, and no new file stays: Error(usage) where a directory is missing, on a network,
 * or on a file system without direct transfers; Error(does_not_fit) where there is no room;
 * Error(machine) where another run has the file, or nothing may be written there.
 *
 * Where io_uring may not be used (FERRY_NO_IO_URING=1 is a way to say so), threads call pread and
 * pwrite; a line in the log says it once. */
std::unique_ptr<FileDisk> open_disk(const std::vector<std::filesystem::path>& files,
                                    int64_t n_bytes,
                                    const DiskOptions& options = {});

}  // namespace ferry
