#include "src/files/plain_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"

namespace ferry {
namespace {

std::string reason(int code) {
  return std::generic_category().message(code);
}

[[noreturn]] void refuse_to_open(const std::filesystem::path& path, int code) {
  if (code == ENOENT || code == ENOTDIR)
    throw Error(Fault::data, "files.open", fmt::format("'{}' does not exist", path.string()),
                "check the path");
  // A socket cannot be opened at all, and the reason says nothing of that.
  struct stat status {};
  if (code == ENXIO && ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    throw Error(
        Fault::data, "files.open",
        fmt::format("'{}' is {}, expected a file", path.string(), kind_of_file(status.st_mode)));
  throw Error(Fault::data, "files.open",
              fmt::format("'{}' cannot be opened: {}", path.string(), reason(code)),
              "check its permissions");
}

[[noreturn]] void refuse_size(std::string_view name, size_t n_bytes) {
  throw Error(Fault::data, "files.read",
              fmt::format("{} has {} and is read as a whole, but {} of memory are free", name,
                          format_bytes(static_cast<int64_t>(n_bytes)),
                          format_bytes(read_host_memory().free_bytes())),
              "is it the right file? if so, split it, or end other programs");
}

/** The system promises memory that it does not have, and ends the process that uses it. So what is
 * free is looked up first, but not for each of many small texts. */
void refuse_without_memory(size_t n_bytes, std::string_view name) {
  constexpr size_t kSmall_bytes = 16 * kMiB;
  if (n_bytes > kSmall_bytes && n_bytes > static_cast<size_t>(read_host_memory().free_bytes()))
    refuse_size(name, n_bytes);
}

/** The text gets this many bytes, or an Error that names the file. */
void make_room(std::string& text, size_t n_bytes, std::string_view name) {
  refuse_without_memory(n_bytes, name);
  try {
    text.resize(n_bytes);
  } catch (const std::bad_alloc&) {
    refuse_size(name, n_bytes);
  }
}

}  // namespace

std::string_view kind_of_file(uint32_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a plain file";
}

PlainFile open_plain_file(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe would wait for a writer. It changes nothing for a plain file.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!fd) refuse_to_open(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0)
    throw Error(Fault::machine, "files.open",
                fmt::format("'{}': {}", path.string(), reason(errno)));
  if (!S_ISREG(status.st_mode))
    throw Error(
        Fault::data, "files.open",
        fmt::format("'{}' is {}, expected a file", path.string(), kind_of_file(status.st_mode)),
        S_ISFIFO(status.st_mode) ? "write what comes through it to a file, and give that"
                                 : "check the path");
  return {std::move(fd), static_cast<size_t>(status.st_size)};
}

size_t read_some(const PlainFile& file, const std::filesystem::path& path, std::span<char> into) {
  for (;;) {
    const ssize_t count = ::read(file.fd.get(), into.data(), into.size());
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR)
      throw Error(Fault::machine, "files.read",
                  fmt::format("'{}' cannot be read: {}", path.string(), reason(errno)));
  }
}

std::string read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  const PlainFile file = open_plain_file(path);
  if (file.size_bytes > max_bytes)
    throw Error(Fault::data, "files.read",
                fmt::format("'{}' has {}, expected at most {}", path.string(),
                            format_bytes(static_cast<int64_t>(file.size_bytes)),
                            format_bytes(static_cast<int64_t>(max_bytes))),
                "is it the right file?");
  std::string text;
  make_room(text, file.size_bytes, fmt::format("'{}'", path.string()));
  for (size_t done = 0; done < text.size();) {
    const size_t count = read_some(file, path, std::span(text).subspan(done));
    if (count == 0)
      throw Error(Fault::data, "files.read",
                  fmt::format("'{}' became shorter while it was read: {} of {} bytes",
                              path.string(), done, text.size()),
                  "wait until nobody writes to it any more");
    done += count;
  }
  return text;
}

std::string read_stream(int descriptor, std::string_view name) {
  std::string text;
  std::vector<char> piece(size_t{1} << 16);
  for (;;) {
    const ssize_t count = ::read(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw Error(Fault::data, "files.read",
                  fmt::format("{} cannot be read: {}", name, reason(errno)));
    if (count == 0) return text;
    const std::string_view got(piece.data(), static_cast<size_t>(count));
    if (const size_t nul = got.find('\0'); nul != got.npos) {
      text.append(got.substr(0, nul));
      throw Error(Fault::data, "files.read",
                  fmt::format("byte {} of {} (line {}) is 0 (NUL), which no text has", text.size(),
                              name, 1 + std::count(text.begin(), text.end(), '\n')),
                  "is it UTF-16 (iconv -f UTF-16 -t UTF-8), or no text at all?");
    }
    // A text that outgrows its room is copied to a larger one: as much as it has must be free
    // again.
    const size_t n_bytes = text.size() + got.size();
    if (n_bytes > text.capacity()) refuse_without_memory(n_bytes, name);
    try {
      text.append(got);
    } catch (const std::bad_alloc&) {
      refuse_size(name, text.size());
    }
  }
}

std::optional<int> descriptor_of(const std::filesystem::path& path) {
  const std::string text = path.lexically_normal().string();
  if (text == "/dev/stdin") return STDIN_FILENO;
  for (std::string_view before : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!text.starts_with(before)) continue;
    int descriptor = -1;
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data() + before.size(), end, descriptor);
    if (code == std::errc{} && stop == end && descriptor >= 0) return descriptor;
  }
  return std::nullopt;
}

bool path_exists(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

bool path_is_directory(const std::filesystem::path& path) {
  std::error_code code;
  return std::filesystem::is_directory(path, code);
}

}  // namespace ferry
