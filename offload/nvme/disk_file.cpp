#include "offload/nvme/disk_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "offload/nvme/drive.h"
#include "offload/nvme/stripes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr int kFlags = O_DIRECT | O_CLOEXEC;
/** The system holds the files of a run that was killed until its last transfers have ended. */
constexpr auto kLockPatience = 2s;

/** A link could lead to any file, and the store would write there. Files without a name are
 * reached through a link of the system's. */
int link_flags(const fs::path& file) {
  return file.parent_path() == fmt::format("/proc/{}/fd", ::getpid()) ? 0 : O_NOFOLLOW;
}

[[noreturn]] void refuse(Fault fault,
                         const fs::path& file,
                         std::string_view what,
                         std::string_view hint) {
  throw Error(fault, "nvme.open", fmt::format("'{}' {}", file.string(), what), hint);
}

std::string_view opening_hint(int code) {
  switch (code) {
    case EACCES:
    case EPERM:
      return "name a directory you may write to";
    case EROFS:
      return "its file system is read-only: mount it for writing, or name another directory";
    case ENOENT:
    case ENOTDIR:
      return "make the directory first, or connect and mount its drive";
    case EMFILE:
    case ENFILE:
      return "too many files are open (ulimit -n)";
    case EISDIR:
      return "a directory has that name: name another one";
    case ELOOP:
      return "it is a link, and a store lies in files alone: put the file itself there";
    default:
      return "see `dmesg` for the drive and its file system";
  }
}

[[noreturn]] void refuse_code(const fs::path& file, std::string_view doing, int code) {
  refuse(code == ENOENT || code == ENOTDIR ? Fault::usage : Fault::machine, file,
         fmt::format("could not be {}: {}", doing, std::generic_category().message(code)),
         opening_hint(code));
}

[[noreturn]] void refuse_direct(const fs::path& file) {
  refuse(Fault::usage, file, "lies on a file system that takes no direct transfers (O_DIRECT)",
         "name a directory on ext4, XFS or Btrfs");
}

/** Any number where the file system does not tell. */
int64_t free_bytes(int fd) {
  struct statvfs space {};
  if (::fstatvfs(fd, &space) != 0 || space.f_blocks == 0) return INT64_MAX;
  return static_cast<int64_t>(space.f_bavail * space.f_frsize);
}

int allocate(int fd, int64_t n_bytes) {
  int code;
  do {
    code = ::fallocate(fd, 0, 0, n_bytes) == 0 ? 0 : errno;
  } while (code == EINTR);
  return code;
}

}  // namespace

DiskFile::DiskFile(fs::path file, int64_t n_bytes, Use use) : file_(std::move(file)), use_(use) {
  open();
  try {
    if (use == Use::reading) {
      check_size(n_bytes);
    } else {
      lock();
      reserve(n_bytes);
    }
    check_direct();
  } catch (...) {
    if (is_new_) ::unlink(file_.c_str());
    throw;
  }
}

DiskFile::DiskFile(DiskFile&& other) noexcept
    : file_(std::move(other.file_)),
      use_(other.use_),
      fd_(std::move(other.fd_)),
      is_new_(std::exchange(other.is_new_, false)) {}

DiskFile::~DiskFile() {
  if (is_new_) ::unlink(file_.c_str());
}

void DiskFile::open() {
  const fs::path directory = file_.has_parent_path() ? file_.parent_path() : ".";
  std::error_code error;
  if (!fs::is_directory(directory, error))
    refuse(Fault::usage, directory, "is no directory",
           "make it first, or connect and mount its drive");
  fd_ = UniqueFd(::open(file_.c_str(),
                        kFlags | link_flags(file_) | (use_ == Use::reading ? O_RDONLY : O_RDWR)));
  const int code = fd_ ? 0 : errno;
  if (code == ENOENT && use_ == Use::making) {
    check_file_system(directory);
    return make();
  }
  if (code == EINVAL) refuse_direct(file_);
  if (code != 0) refuse_code(file_, "opened", code);
  struct stat found {};
  if (::fstat(fd_.get(), &found) != 0) refuse_code(file_, "opened", errno);
  if (!S_ISREG(found.st_mode))
    refuse(Fault::usage, file_, "is no regular file", "name another directory");
  check_file_system(file_);
}

void DiskFile::make() {
  fd_ = UniqueFd(::open(file_.c_str(), kFlags | O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!fd_ && errno == EINVAL) {
    ::unlink(file_.c_str());  // some make the file before they refuse
    refuse_direct(file_);
  }
  if (!fd_ && errno == EEXIST) return open();  // another run was quicker: the lock tells
  if (!fd_) refuse_code(file_, "made", errno);
  is_new_ = true;
  // Btrfs would write every change elsewhere and take new space for it, in place of the reserved.
  int flags = 0;
  if (::ioctl(fd_.get(), FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_NOCOW_FL;
    ::ioctl(fd_.get(), FS_IOC_SETFLAGS, &flags);  // others refuse it, and need it not
  }
}

void DiskFile::lock() {
  const auto end = std::chrono::steady_clock::now() + kLockPatience;
  while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) refuse_code(file_, "locked", errno);
    if (std::chrono::steady_clock::now() >= end)
      refuse(Fault::machine, file_, "is in use by another run",
             "let that run end, or name another directory; `ferry runs ls` shows what runs");
    std::this_thread::sleep_for(20ms);
  }
  struct stat held {
  }, named{};
  if (::fstat(fd_.get(), &held) != 0 || ::stat(file_.c_str(), &named) != 0 ||
      held.st_dev != named.st_dev || held.st_ino != named.st_ino)
    refuse(Fault::machine, file_, "was removed by another run", "start again");
}

void DiskFile::check_size(int64_t n_bytes) {
  struct stat found {};
  if (::fstat(fd_.get(), &found) != 0) refuse_code(file_, "looked at", errno);
  if (found.st_size < n_bytes)
    refuse(Fault::data, file_, fmt::format("has {} bytes, expected {}", found.st_size, n_bytes),
           "was it copied to its end?");
}

void DiskFile::reserve(int64_t n_bytes) {
  struct stat found {};
  if (::fstat(fd_.get(), &found) != 0) refuse_code(file_, "looked at", errno);
  const int64_t n_before = found.st_size;
  const int64_t n_missing = n_bytes - std::min<int64_t>(n_bytes, found.st_blocks * 512);
  const auto refuse_space = [&] {
    refuse(Fault::does_not_fit, file_,
           fmt::format("needs {} more, and its drive has {} free", format_bytes(n_missing),
                       format_bytes(free_bytes(fd_.get()))),
           "free some space there, or name a directory on another drive");
  };
  // Some give out all that there is before they find that it is not enough.
  if (n_missing > free_bytes(fd_.get())) refuse_space();
  const int code = allocate(fd_.get(), n_bytes);
  if (code == 0) return;
  if (code == EOPNOTSUPP && n_before >= n_bytes) return;  // its space is that program's matter
  // Where this fails too, what was given out stays with the file.
  [[maybe_unused]] const int restored = ::ftruncate(fd_.get(), n_before);
  if (code == ENOSPC || code == EDQUOT) refuse_space();
  if (code == EOPNOTSUPP)
    refuse(Fault::usage, file_, "lies on a file system that cannot reserve space (fallocate)",
           "name a directory on ext4, XFS or Btrfs");
  if (code == EFBIG)
    refuse(Fault::machine, file_, fmt::format("may not be as large as {}", format_bytes(n_bytes)),
           "raise the limit on file sizes (ulimit -f), or name a directory on ext4, XFS or Btrfs");
  refuse_code(file_, fmt::format("given {}", format_bytes(n_bytes)), code);
}

/** Opening with O_DIRECT says too little: some refuse the transfers themselves. */
void DiskFile::check_direct() {
  alignas(kDiskAlignment_bytes) std::array<std::byte, kDiskAlignment_bytes> sector;
  ssize_t count;
  do {
    count = ::pread(fd_.get(), sector.data(), sector.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EINVAL) refuse_direct(file_);
  if (count < 0) refuse_code(file_, "read", errno);
}

UniqueFd DiskFile::keep() {
  if (use_ == Use::reading) return std::move(fd_);
  if (::fsync(fd_.get()) != 0) refuse_code(file_, "flushed", errno);
  if (is_new_) {
    const fs::path directory = file_.has_parent_path() ? file_.parent_path() : ".";
    const UniqueFd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent || ::fsync(parent.get()) != 0) refuse_code(directory, "flushed", errno);
  }
  is_new_ = false;
  return std::move(fd_);
}

}  // namespace ferry
