#include "src/runs/store/store_room.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "offload/nvme/drive.h"
#include "offload/nvme/open_disk.h"
#include "offload/nvme/stripes.h"
#include "offload/store/store_layout.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/unique_fd.h"

namespace ferry::runs {
namespace {

namespace fs = std::filesystem;

/** Left free on a drive: others write there too, and full SSDs are slow. */
constexpr int64_t kMargin_bytes = 256 * kMiB, kMargin_parts = 50;

[[noreturn]] void refuse(Fault fault,
                         const fs::path& directory,
                         std::string_view what,
                         std::string_view hint) {
  throw Error(fault, "nvme.path", fmt::format("'{}' of nvme_path {}", directory.string(), what),
              hint);
}

/** A file without a name is made and gone: nobody sees it, and no byte of it is written. */
void check_writable(const fs::path& directory) {
  const UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600));
  const int code = file ? 0 : errno;
  switch (code) {
    case 0:
    case EOPNOTSUPP:  // it knows no such files: the store's own will show it
    case EISDIR:
      return;
    case EINVAL:
      refuse(Fault::usage, directory,
             "is on a file system that takes no direct transfers (O_DIRECT)",
             "name a directory on ext4, XFS or Btrfs");
    case EROFS:
      refuse(Fault::machine, directory, "is on a read-only file system",
             "mount it for writing, or name another directory");
    default:
      refuse(Fault::machine, directory,
             fmt::format("takes no files: {}", std::generic_category().message(code)),
             code == ENOSPC || code == EDQUOT ? "free some space there, or name another directory"
                                              : "name a directory you may write to");
  }
}

struct Drive {
  dev_t device = 0;  ///< of its file system
  fs::path directory;
  int64_t n_directories = 0;
  int64_t free_bytes = 0;
};

/** In the order of the directories. */
std::vector<Drive> drives_of(const Directories& directories) {
  std::vector<Drive> drives;
  for (const fs::path& directory : directories) {
    struct stat found {};
    std::error_code error;
    const fs::space_info space = fs::space(directory, error);
    if (error || ::stat(directory.c_str(), &found) != 0)
      refuse(Fault::machine, directory,
             fmt::format("cannot be looked at: {}",
                         error ? error.message() : std::generic_category().message(errno)),
             "connect and mount the drive, or name another directory");
    auto drive = std::ranges::find(drives, found.st_dev, &Drive::device);
    if (drive == drives.end())
      drive = drives.insert(drive, {.device = found.st_dev, .directory = directory});
    ++drive->n_directories;
    drive->free_bytes = static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX / 64));
  }
  return drives;
}

std::string formula_of(const StoreNeed& need) {
  const std::string grads =
      need.grad_bytes > 0 ? fmt::format(" and gradients of {}", format_bytes(need.grad_bytes)) : "";
  return fmt::format("states of {} x (2 + {} checkpoints at once){}",
                     format_bytes(need.state_bytes), need.n_kept, grads);
}

std::string advice_on(const StoreNeed& need) {
  std::string advice = "free some space there (`ferry runs stores` shows what runs have left)";
  if (need.n_kept > 1) advice += ", lower save_total_limit";
  if (need.n_kept > 0)
    advice += ", set save_strategy = no (a run that is killed then starts again)";
  return advice + ", choose optim = adamw_8bit, or name one more drive";
}

}  // namespace

void check_store_directories(const Directories& directories) {
  if (directories.size() > kDiskFiles_max)
    throw Error(Fault::usage, "nvme.path",
                fmt::format("nvme_path names {} directories, at most {} can be", directories.size(),
                            kDiskFiles_max));
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const fs::path& directory : directories) {
    std::error_code error;
    struct stat found {};
    if (!fs::is_directory(directory, error) || ::stat(directory.c_str(), &found) != 0)
      refuse(Fault::usage, directory, "is no directory",
             "make it first, or connect and mount its drive");
    if (!seen.emplace(found.st_dev, found.st_ino).second)
      refuse(Fault::usage, directory, "is named twice", "name each drive once");
    check_file_system(directory);
    check_writable(directory);
  }
}

DirectoryLocks lock_store_directories(const Directories& directories) {
  DirectoryLocks locks;
  for (const fs::path& directory : directories) {
    locks.push_back(std::make_unique<FileLock>(directory / ".ferry-nvme.lock"));
    if (locks.back()->try_lock() == FileLock::State::of_another)
      refuse(
          Fault::machine, directory, "is in use by another run",
          "let that run end (`ferry runs ls` shows what runs), or make a directory for each run");
  }
  return locks;
}

int64_t store_budget_bytes(const NvmeSettings& settings, int64_t own_bytes_each) {
  int64_t each = INT64_MAX / 64;
  for (const Drive& drive : drives_of(settings.directories)) {
    const int64_t margin =
        settings.memory_bytes ? 0 : std::max(kMargin_bytes, drive.free_bytes / kMargin_parts);
    const int64_t usable = std::max<int64_t>(0, drive.free_bytes - margin);
    each = std::min(each, usable / drive.n_directories + own_bytes_each);
  }
  const int64_t there = each / kStripe_bytes * kStripe_bytes * std::ssize(settings.directories);
  return std::min(settings.memory_bytes.value_or(INT64_MAX), there);
}

void check_store_room(const NvmeSettings& settings, const StoreNeed& need) {
  if (settings.memory_bytes && need.n_bytes > *settings.memory_bytes)
    throw Error(Fault::does_not_fit, "nvme.room",
                fmt::format("nvme_memory is {}, and the run needs {}: {}",
                            format_bytes(*settings.memory_bytes), format_bytes(need.n_bytes),
                            formula_of(need)),
                "raise nvme_memory, or " + advice_on(need));
  const int64_t each =
      Stripes{static_cast<int>(settings.directories.size())}.file_bytes(need.n_bytes);
  for (const Drive& drive : drives_of(settings.directories)) {
    const int64_t n_bytes = each * drive.n_directories;
    if (n_bytes <= drive.free_bytes) continue;
    refuse(Fault::does_not_fit, drive.directory,
           fmt::format("has {} free, and the run needs {} there: {}{}",
                       format_bytes(drive.free_bytes), format_bytes(n_bytes), formula_of(need),
                       settings.directories.size() > 1
                           ? fmt::format(" in {} directories", settings.directories.size())
                           : ""),
           advice_on(need));
  }
}

}  // namespace ferry::runs
