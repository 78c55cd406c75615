// The name that programs of large files call is defined here by itself.
#undef _FILE_OFFSET_BITS

// Preloaded into a process, a disk that stops to answer: the first call named FERRY_HUNG_CALL
// ("open" or "fsync") of a file whose path holds FERRY_HUNG_PATH never returns, nor does any later
// one of it.

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void hang_where_told(const char* call, const char* path) {
  const char *told_call = std::getenv("FERRY_HUNG_CALL"),
             *told_path = std::getenv("FERRY_HUNG_PATH");
  if (!told_call || !told_path || std::strcmp(call, told_call) != 0) return;
  if (!std::strstr(path, told_path)) return;
  constexpr char kText[] = "the disk hangs\n";
  [[maybe_unused]] const ssize_t n = ::write(STDERR_FILENO, kText, sizeof kText - 1);
  while (true)
    ::pause();  // signals have their handlers
}

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
  va_end(more);
  hang_where_told("open", path);
  return real<int (*)(const char*, int, mode_t)>("open64")(path, flags, mode);
}
int fsync(int fd) {
  char path[4096] = {};
  if (::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1) > 0)
    hang_where_told("fsync", path);
  return real<int (*)(int)>("fsync")(fd);
}
}
