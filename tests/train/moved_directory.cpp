// The name that programs of large files call is defined here by itself.
#undef _FILE_OFFSET_BITS

// Preloaded into a process, somebody who moves a run's directory at the worst moment: MOVE_RUN is
// renamed to MOVE_TO just before the first call named MOVE_AT_CALL ("open" or "rename") of a path
// that holds MOVE_AT_PATH, once the run has a complete checkpoint-5.

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

int real_rename(const char* from, const char* to) {
  return real<int (*)(const char*, const char*)>("rename")(from, to);
}

void move_where_told(const char* call, const char* path) {
  static std::atomic<bool> is_moved = false;
  const char *run = std::getenv("MOVE_RUN"), *to = std::getenv("MOVE_TO"),
             *told_call = std::getenv("MOVE_AT_CALL"), *told_path = std::getenv("MOVE_AT_PATH");
  if (!run || !to || !told_call || !told_path || is_moved) return;
  if (std::strcmp(call, told_call) != 0 || !std::strstr(path, told_path)) return;
  if (::access((std::string(run) + "/checkpoint-5/COMPLETE").c_str(), F_OK) != 0) return;
  if (!is_moved.exchange(true)) real_rename(run, to);
}

}  // namespace

extern "C" {
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
  va_end(more);
  move_where_told("open", path);
  return real<int (*)(const char*, int, mode_t)>("open64")(path, flags, mode);
}
int rename(const char* from, const char* to) noexcept {
  move_where_told("rename", to);
  return real_rename(from, to);
}
}
