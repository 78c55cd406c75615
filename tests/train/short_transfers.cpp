// The names that programs of large files call are defined here by themselves.
#undef _FILE_OFFSET_BITS

// Preloaded into a process, a drive that moves a part of what it is asked for, and now and then
// nothing: reads and writes of more than a sector of a run's states end early, or say EINTR or
// EAGAIN.

#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>

namespace {

constexpr size_t kSector_bytes = 4096;
std::atomic<unsigned> n_calls = 0;

bool is_states(int fd) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::readlink(link.c_str(), path, sizeof path);
  return n > 0 && std::string_view(path, static_cast<size_t>(n)).ends_with(".states");
}

template <typename Memory>
ssize_t move(const char* name, int fd, Memory memory, size_t n_bytes, off64_t offset) {
  const auto real =
      reinterpret_cast<ssize_t (*)(int, Memory, size_t, off64_t)>(::dlsym(RTLD_NEXT, name));
  if (n_bytes <= kSector_bytes || !is_states(fd)) return real(fd, memory, n_bytes, offset);
  switch (n_calls++ % 7) {
    case 2:
      errno = EINTR;
      return -1;
    case 5:
      errno = EAGAIN;
      return -1;
    default:
      // Half of it, in whole sectors.
      n_bytes = (n_bytes / 2 + kSector_bytes - 1) / kSector_bytes * kSector_bytes;
      return real(fd, memory, n_bytes, offset);
  }
}

}  // namespace

extern "C" {
ssize_t pread64(int fd, void* memory, size_t n_bytes, off64_t offset) {
  return move("pread64", fd, memory, n_bytes, offset);
}
ssize_t pwrite64(int fd, const void* memory, size_t n_bytes, off64_t offset) {
  return move("pwrite64", fd, memory, n_bytes, offset);
}
}
