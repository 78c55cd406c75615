// Both names of a call are defined here, so neither may stand for the other.
#undef _FILE_OFFSET_BITS

#include "tests/files/write/disk_log.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

using ferry::test::DiskCall;
using ferry::test::DiskRecord;

namespace {

// Held over the call and its record, so that the log has them in one order. Never destroyed: files
// are closed after static objects are gone.
std::recursive_mutex& lock() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}
std::string& root() {
  static auto* const text = new std::string;
  return *text;
}
std::atomic<int> log_fd = -1;
std::array<std::atomic<bool>, 4096> is_logged{};  // by descriptor

bool has(int fd) {
  return log_fd >= 0 && fd >= 0 && static_cast<size_t>(fd) < is_logged.size() &&
         is_logged[static_cast<size_t>(fd)];
}

template <typename F>
F real(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

/** Absolute, without a slash at the end; `directory` as of openat. */
std::string whole(int directory, const char* path) {
  std::string text = path;
  if (path[0] != '/') {
    char at[4096] = {};
    const std::string link =
        directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(directory);
    const ssize_t n = ::readlink(link.c_str(), at, sizeof at - 1);
    text = std::string(at, n > 0 ? static_cast<size_t>(n) : 0) + "/" + path;
  }
  while (text.size() > 1 && text.back() == '/')
    text.pop_back();
  return text;
}

bool is_below(const std::string& path) {
  return log_fd >= 0 && !root().empty() && path.starts_with(root()) &&
         (path.size() == root().size() || path[root().size()] == '/');
}

void put(const void* bytes, size_t n_bytes) {
  static const auto write = real<ssize_t (*)(int, const void*, size_t)>("write");
  for (size_t done = 0; done < n_bytes;) {
    const ssize_t n = write(log_fd, static_cast<const char*>(bytes) + done, n_bytes - done);
    if (n < 0) std::abort();  // a log with holes proves nothing
    done += static_cast<size_t>(n);
  }
}

struct What {
  int fd = -1, flags = 0;
  std::string_view path, other;
  const void* bytes = nullptr;
  size_t n_bytes = 0;
  int64_t at = 0;
};
void note(DiskCall call, const What& what) {
  const DiskRecord record = {call,
                             what.fd,
                             what.flags,
                             static_cast<uint32_t>(what.path.size()),
                             static_cast<uint32_t>(what.other.size()),
                             static_cast<uint32_t>(what.n_bytes),
                             what.at};
  put(&record, sizeof record);
  put(what.path.data(), what.path.size());
  put(what.other.data(), what.other.size());
  put(what.bytes, what.n_bytes);
}

int note_open(int fd, const std::string& path, int flags) {
  if (fd < 0 || !is_below(path)) return fd;
  if (static_cast<size_t>(fd) >= is_logged.size()) std::abort();
  is_logged[static_cast<size_t>(fd)] = true;
  note(DiskCall::open, {.fd = fd, .flags = flags, .path = path});
  return fd;
}

int open_by(const char* name, const char* path, int flags, mode_t mode) {
  const auto real_open = real<int (*)(const char*, int, mode_t)>(name);
  if (log_fd < 0) return real_open(path, flags, mode);
  std::lock_guard guard(lock());
  return note_open(real_open(path, flags, mode), whole(AT_FDCWD, path), flags);
}

int open_at_by(const char* name, int directory, const char* path, int flags, mode_t mode) {
  const auto real_open = real<int (*)(int, const char*, int, mode_t)>(name);
  if (log_fd < 0) return real_open(directory, path, flags, mode);
  std::lock_guard guard(lock());
  return note_open(real_open(directory, path, flags, mode), whole(directory, path), flags);
}

ssize_t note_write(int fd, int64_t at, const void* bytes, ssize_t n) {
  if (n > 0)
    note(DiskCall::write, {.fd = fd, .bytes = bytes, .n_bytes = static_cast<size_t>(n), .at = at});
  return n;
}

ssize_t pwrite_by(const char* name, int fd, const void* bytes, size_t n_bytes, off_t at) {
  const auto real_write = real<ssize_t (*)(int, const void*, size_t, off_t)>(name);
  if (!has(fd)) return real_write(fd, bytes, n_bytes, at);
  std::lock_guard guard(lock());
  return note_write(fd, at, bytes, real_write(fd, bytes, n_bytes, at));
}

ssize_t pwritev_by(const char* name, int fd, const iovec* parts, int n_parts, off_t at) {
  const auto real_write = real<ssize_t (*)(int, const iovec*, int, off_t)>(name);
  if (!has(fd)) return real_write(fd, parts, n_parts, at);
  std::lock_guard guard(lock());
  const ssize_t n = real_write(fd, parts, n_parts, at);
  for (ssize_t done = 0; done < n; ++parts) {
    const ssize_t part = std::min(n - done, static_cast<ssize_t>(parts->iov_len));
    note_write(fd, at + done, parts->iov_base, part);
    done += part;
  }
  return n;
}

int truncate_by(const char* name, int fd, off_t size) {
  const auto real_truncate = real<int (*)(int, off_t)>(name);
  if (!has(fd)) return real_truncate(fd, size);
  std::lock_guard guard(lock());
  const int code = real_truncate(fd, size);
  if (code == 0) note(DiskCall::truncate, {.fd = fd, .at = size});
  return code;
}

int allocate_by(const char* name, int fd, int mode, off_t at, off_t n_bytes) {
  const auto real_allocate = real<int (*)(int, int, off_t, off_t)>(name);
  if (!has(fd)) return real_allocate(fd, mode, at, n_bytes);
  std::lock_guard guard(lock());
  const int code = real_allocate(fd, mode, at, n_bytes);
  if (code == 0) note(DiskCall::allocate, {.fd = fd, .at = at + n_bytes});
  return code;
}

int sync_by(const char* name, int fd) {
  const auto real_sync = real<int (*)(int)>(name);
  if (!has(fd)) return real_sync(fd);
  std::lock_guard guard(lock());
  const int code = real_sync(fd);
  if (code == 0) note(DiskCall::sync, {.fd = fd});
  return code;
}

/** Notes a finished call on one path. */
int note_path(DiskCall call, int code, const std::string& path) {
  if (code == 0 && is_below(path)) note(call, {.path = path});
  return code;
}

int note_rename(DiskCall call, int code, const std::string& from, const std::string& to) {
  if (code == 0 && is_below(from)) note(call, {.path = from, .other = to});
  return code;
}

mode_t mode_of(int flags, va_list& more) {
  return (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0;
}

__attribute__((constructor)) void begin_by_environment() {
  const char *directory = std::getenv("FERRY_DISK_LOG_ROOT"), *file = std::getenv("FERRY_DISK_LOG");
  if (directory && file) ferry_disk_log_begin(directory, file);
}

}  // namespace

extern "C" {

void ferry_disk_log_begin(const char* directory, const char* file) {
  std::lock_guard guard(lock());
  root() = directory;
  const int fd = real<int (*)(const char*, int, mode_t)>("open")(
      file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0) std::abort();
  log_fd = fd;
}
void ferry_disk_log_mark(const char* text) {
  std::lock_guard guard(lock());
  if (log_fd >= 0) note(DiskCall::mark, {.path = text});
}
void ferry_disk_log_end() {
  std::lock_guard guard(lock());
  if (log_fd >= 0) real<int (*)(int)>("close")(log_fd);
  log_fd = -1;
  for (auto& one : is_logged)
    one = false;
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_by("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_by("open64", path, flags, mode);
}
int openat(int directory, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_at_by("openat", directory, path, flags, mode);
}
int openat64(int directory, const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_at_by("openat64", directory, path, flags, mode);
}
int close(int fd) {
  static const auto real_close = real<int (*)(int)>("close");
  if (!has(fd)) return real_close(fd);
  std::lock_guard guard(lock());
  is_logged[static_cast<size_t>(fd)] = false;
  note(DiskCall::close, {.fd = fd});
  return real_close(fd);
}

ssize_t write(int fd, const void* bytes, size_t n_bytes) {
  static const auto real_write = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (!has(fd)) return real_write(fd, bytes, n_bytes);
  std::lock_guard guard(lock());
  struct stat before {};
  const bool appends = (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  if (appends) ::fstat(fd, &before);
  const int64_t at = appends ? before.st_size : ::lseek(fd, 0, SEEK_CUR);
  return note_write(fd, at, bytes, real_write(fd, bytes, n_bytes));
}
ssize_t pwrite(int fd, const void* bytes, size_t n_bytes, off_t at) {
  return pwrite_by("pwrite", fd, bytes, n_bytes, at);
}
ssize_t pwrite64(int fd, const void* bytes, size_t n_bytes, off_t at) {
  return pwrite_by("pwrite64", fd, bytes, n_bytes, at);
}
ssize_t pwritev(int fd, const iovec* parts, int n_parts, off_t at) {
  return pwritev_by("pwritev", fd, parts, n_parts, at);
}
ssize_t pwritev64(int fd, const iovec* parts, int n_parts, off_t at) {
  return pwritev_by("pwritev64", fd, parts, n_parts, at);
}

int ftruncate(int fd, off_t size) noexcept {
  return truncate_by("ftruncate", fd, size);
}
int ftruncate64(int fd, off_t size) noexcept {
  return truncate_by("ftruncate64", fd, size);
}
int fallocate(int fd, int mode, off_t at, off_t n_bytes) {
  return allocate_by("fallocate", fd, mode, at, n_bytes);
}
int fallocate64(int fd, int mode, off_t at, off_t n_bytes) {
  return allocate_by("fallocate64", fd, mode, at, n_bytes);
}
int fsync(int fd) {
  return sync_by("fsync", fd);
}
int fdatasync(int fd) {
  return sync_by("fdatasync", fd);
}

int mkdir(const char* path, mode_t mode) noexcept {
  std::lock_guard guard(lock());
  return note_path(DiskCall::make_directory,
                   real<int (*)(const char*, mode_t)>("mkdir")(path, mode), whole(AT_FDCWD, path));
}
int unlink(const char* path) noexcept {
  std::lock_guard guard(lock());
  return note_path(DiskCall::remove, real<int (*)(const char*)>("unlink")(path),
                   whole(AT_FDCWD, path));
}
int rmdir(const char* path) noexcept {
  std::lock_guard guard(lock());
  return note_path(DiskCall::remove, real<int (*)(const char*)>("rmdir")(path),
                   whole(AT_FDCWD, path));
}
int remove(const char* path) noexcept {
  std::lock_guard guard(lock());
  return note_path(DiskCall::remove, real<int (*)(const char*)>("remove")(path),
                   whole(AT_FDCWD, path));
}
int unlinkat(int directory, const char* path, int flags) noexcept {
  std::lock_guard guard(lock());
  const std::string named = whole(directory, path);
  return note_path(DiskCall::remove,
                   real<int (*)(int, const char*, int)>("unlinkat")(directory, path, flags), named);
}
int rename(const char* from, const char* to) noexcept {
  std::lock_guard guard(lock());
  return note_rename(DiskCall::rename, real<int (*)(const char*, const char*)>("rename")(from, to),
                     whole(AT_FDCWD, from), whole(AT_FDCWD, to));
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) noexcept {
  std::lock_guard guard(lock());
  const auto real_rename = real<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  return note_rename((flags & RENAME_EXCHANGE) ? DiskCall::exchange : DiskCall::rename,
                     real_rename(from_at, from, to_at, to, flags), whole(from_at, from),
                     whole(to_at, to));
}
}
