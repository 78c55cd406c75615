#include "src/files/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/out_of_memory.h"
#include "src/files/unique_fd.h"

namespace ferry {
namespace {

struct OpenedFile {
  UniqueFd fd;
  size_t size_bytes;
};

OpenedFile open_for_reading(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    int code = errno;
    if (code == ENOENT || code == ENOTDIR)
      throw Error(Fault::data, "files.open", fmt::format("'{}' does not exist", path.string()),
                  "check the path");
    throw Error(Fault::data, "files.open",
                fmt::format("'{}' cannot be opened: {}", path.string(),
                            std::generic_category().message(code)),
                "check its permissions");
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0)
    throw Error(Fault::machine, "files.open",
                fmt::format("'{}': {}", path.string(), std::generic_category().message(errno)));
  if (!S_ISREG(status.st_mode))
    throw Error(Fault::data, "files.open",
                fmt::format("'{}' is {}, expected a file", path.string(),
                            S_ISDIR(status.st_mode) ? "a directory" : "not a plain file"));
  return {std::move(fd), static_cast<size_t>(status.st_size)};
}

}  // namespace

MappedFile MappedFile::open(const std::filesystem::path& path) {
  OpenedFile opened = open_for_reading(path);
  MappedFile file;
  file.path_ = path;
  if (opened.size_bytes == 0) return file;  // mmap refuses a length of zero
  void* address = ::mmap(nullptr, opened.size_bytes, PROT_READ, MAP_PRIVATE, opened.fd.get(), 0);
  if (address == MAP_FAILED) {
    const int code = errno;
    throw Error(code == ENOMEM ? Fault::does_not_fit : Fault::machine, "files.map",
                fmt::format("'{}' ({}) cannot be mapped: {}", path.string(),
                            format_bytes(static_cast<int64_t>(opened.size_bytes)),
                            std::generic_category().message(code)),
                code == ENOMEM ? kNoMemoryHint : "is it on a file system that maps files?");
  }
  file.bytes_ = {static_cast<const std::byte*>(address), opened.size_bytes};
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::string read_text_file(const std::filesystem::path& path, size_t max_bytes) {
  OpenedFile opened = open_for_reading(path);
  if (opened.size_bytes > max_bytes)
    throw Error(Fault::data, "files.read",
                fmt::format("'{}' has {}, expected at most {}", path.string(),
                            format_bytes(static_cast<int64_t>(opened.size_bytes)),
                            format_bytes(static_cast<int64_t>(max_bytes))));
  std::string text(opened.size_bytes, '\0');
  size_t done = 0;
  while (done < text.size()) {
    ssize_t count = ::read(opened.fd.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw Error(Fault::machine, "files.read",
                  fmt::format("'{}': {}", path.string(), std::generic_category().message(errno)));
    if (count == 0) break;  // shortened while we read it
    done += static_cast<size_t>(count);
  }
  text.resize(done);
  return text;
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
