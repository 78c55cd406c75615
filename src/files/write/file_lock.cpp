#include "src/files/write/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "src/files/write/write_error.h"

namespace ferry {

FileLock::FileLock(std::filesystem::path file) : file_(std::move(file)) {
  open();
}

FileLock::~FileLock() {
  if (is_held_) ::unlink(file_.c_str());
}

void FileLock::open() {
  fd_ = UniqueFd(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd_) throw_write_error(file_, "created", errno);
}

FileLock::State FileLock::try_lock() {
  return lock_as(LOCK_EX | LOCK_NB);
}

FileLock::State FileLock::lock() {
  return lock_as(LOCK_EX);
}

FileLock::State FileLock::lock_as(int operation) {
  for (;;) {
    if (::flock(fd_.get(), operation) != 0) {
      if (errno == EINTR) continue;
      return errno == EWOULDBLOCK ? State::of_another : State::unsupported;
    }
    // The one before may have removed the file that was opened here.
    is_held_ = is_current();
    if (is_held_) return State::held;
    open();
  }
}

bool FileLock::is_current() const {
  struct stat held {
  }, named{};
  return ::fstat(fd_.get(), &held) == 0 && ::lstat(file_.c_str(), &named) == 0 &&
         held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

}  // namespace ferry
