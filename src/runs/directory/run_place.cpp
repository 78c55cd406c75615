#include "src/runs/directory/run_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "src/runs/directory/checkpoints.h"

namespace ferry::runs {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

RunPlace::RunPlace(fs::path path)
    : path_(std::move(path)), fd_(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

RunPlace::Lock RunPlace::lock() {
  // A reader holds it for a moment, to see whether he can.
  for (int attempt = 0; fd_ && attempt < 20; ++attempt) {
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return Lock::held;
    if (errno != EWOULDBLOCK && errno != EINTR) return Lock::unsupported;
    std::this_thread::sleep_for(10ms);
  }
  return Lock::of_another;
}

std::optional<bool> RunPlace::is_locked() const {
  // Whoever can lock it has no trainer beside him.
  if (fd_ && ::flock(fd_.get(), LOCK_SH | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? std::optional(true) : std::nullopt;
  if (!fd_) return true;
  ::flock(fd_.get(), LOCK_UN);
  return false;
}

void RunPlace::check() const {
  struct stat held {
  }, found{};
  if (!fd_ || ::fstat(fd_.get(), &held) != 0) return;
  const bool is_there = ::stat(path_.c_str(), &found) == 0;
  if (is_there && found.st_dev == held.st_dev && found.st_ino == held.st_ino) return;
  if (!is_there && errno != ENOENT && errno != ENOTDIR) return;  // a network that is slow to answer
  std::error_code error;
  const fs::path now = fs::read_symlink(fmt::format("/proc/self/fd/{}", fd_.get()), error);
  if (held.st_nlink == 0 || error || !fs::is_directory(now, error))
    throw Error(Fault::machine, "runs.gone",
                fmt::format("'{}' was removed while the run trained, and its checkpoints with it",
                            path_.string()),
                "start the run again");
  const auto all = complete_checkpoints(now);
  throw Error(
      Fault::machine, "runs.gone",
      fmt::format("'{}' was moved to '{}' while the run trained", path_.string(), now.string()),
      fmt::format("{}; continue with: ferry train --resume '{}'",
                  all.empty() ? "it has no complete checkpoint"
                              : fmt::format("its last complete checkpoint is '{}'",
                                            all.back().path.string()),
                  now.string()));
}

}  // namespace ferry::runs
