// The name that programs of large files call is defined here by itself.
#undef _FILE_OFFSET_BITS

// Preloaded into a process, moments of its work with files, each just before a call that changes
// one. At a moment the process ends as by `kill -9`, or it stops for somebody who fills the disk:
//
//   MOMENT_KILL=N       ends before the Nth such call
//   MOMENT_PATH=TEXT    stops before the first call of a path that holds TEXT (with MOMENT_NTH=N
//                       before the Nth)
//   MOMENT_WRITE=TEXT   the same before the first write of bytes that hold TEXT; with
//                       MOMENT_AFTER=1 right after it
//   MOMENT_FILE=FILE    made when the process stops; it goes on when the file has gone
//   MOMENT_COUNT=FILE   gets the number of all such calls when the process ends by itself

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

const char* told(const char* name) {
  return std::getenv(name);
}

int number_told(const char* name, int otherwise) {
  const char* text = told(name);
  return text ? std::atoi(text) : otherwise;
}

int real_open(const char* path, int flags, mode_t mode) {
  static const auto call = real<int (*)(const char*, int, mode_t)>("open64");
  return call(path, flags, mode);
}

std::atomic<int> n_calls = 0, n_matches = 0;

/** Other threads go on, as they do while a disk takes its time. */
void stop() {
  const char* file = told("MOMENT_FILE");
  if (!file || n_matches.fetch_add(1) + 1 != number_told("MOMENT_NTH", 1)) return;
  ::close(real_open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  while (::access(file, F_OK) == 0)
    ::usleep(500);
}

void count() {
  static const int n_last = number_told("MOMENT_KILL", 0);
  if (n_calls.fetch_add(1) + 1 == n_last) ::kill(::getpid(), SIGKILL);
}

void before(const char* path) {
  count();
  const char* wanted = told("MOMENT_PATH");
  if (wanted && path && std::string_view(path).find(wanted) != std::string_view::npos) stop();
}

bool is_text_told(const void* bytes, size_t n) {
  const char* wanted = told("MOMENT_WRITE");
  return wanted && std::string_view(static_cast<const char*>(bytes), n).find(wanted) !=
                       std::string_view::npos;
}

template <typename Call>
ssize_t at_write(const void* bytes, size_t n, const Call& call) {
  count();
  const bool stops = is_text_told(bytes, n);
  static const bool is_after = number_told("MOMENT_AFTER", 0) == 1;
  if (stops && !is_after) stop();
  const ssize_t result = call();
  if (stops && is_after) stop();
  return result;
}

__attribute__((destructor)) void tell_count() {
  const char* file = told("MOMENT_COUNT");
  if (!file) return;
  const std::string text = std::to_string(n_calls.load());
  const int fd = real_open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  static const auto call = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (call(fd, text.data(), text.size()) < 0) std::perror(file);
  ::close(fd);
}

}  // namespace

extern "C" {
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0;
  va_end(more);
  if (flags & O_CREAT) before(path);
  return real_open(path, flags, mode);
}
int mkdir(const char* path, mode_t mode) noexcept {
  before(path);
  static const auto call = real<int (*)(const char*, mode_t)>("mkdir");
  return call(path, mode);
}
int rename(const char* from, const char* to) noexcept {
  before(to);
  static const auto call = real<int (*)(const char*, const char*)>("rename");
  return call(from, to);
}
int unlink(const char* path) noexcept {
  before(path);
  static const auto call = real<int (*)(const char*)>("unlink");
  return call(path);
}
int unlinkat(int fd, const char* path, int flags) noexcept {
  count();
  static const auto call = real<int (*)(int, const char*, int)>("unlinkat");
  return call(fd, path, flags);
}
int fsync(int fd) {
  count();
  static const auto call = real<int (*)(int)>("fsync");
  return call(fd);
}
int fdatasync(int fd) {
  count();
  static const auto call = real<int (*)(int)>("fdatasync");
  return call(fd);
}
int ftruncate64(int fd, off64_t n_bytes) noexcept {
  count();
  static const auto call = real<int (*)(int, off64_t)>("ftruncate64");
  return call(fd, n_bytes);
}
ssize_t pwrite64(int fd, const void* bytes, size_t n, off64_t at) {
  static const auto call = real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return at_write(bytes, n, [&] { return call(fd, bytes, n, at); });
}
ssize_t write(int fd, const void* bytes, size_t n) {
  static const auto call = real<ssize_t (*)(int, const void*, size_t)>("write");
  // Files alone: what a process says goes to 1 and 2.
  if (fd <= 2) return call(fd, bytes, n);
  return at_write(bytes, n, [&] { return call(fd, bytes, n); });
}
}
