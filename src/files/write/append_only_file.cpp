#include "src/files/write/append_only_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "src/files/write/owned_file.h"
#include "src/files/write/write_error.h"

namespace ferry {

AppendOnlyFile::AppendOnlyFile(std::filesystem::path path, int64_t n_kept_bytes)
    : path_(std::move(path)),
      fd_(open_owned_file(path_, O_WRONLY | O_CREAT | O_APPEND)),
      n_bytes_(n_kept_bytes) {
  if (::ftruncate(fd_.get(), n_kept_bytes) != 0) throw_write_error(path_, "shortened", errno);
}

void AppendOnlyFile::append(std::string_view bytes) {
  const auto n_all = static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int code = errno;
      if (::ftruncate(fd_.get(), n_bytes_) != 0) throw_write_error(path_, "shortened", errno);
      throw_write_error(path_, "written", code);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  n_bytes_ += n_all;
}

void AppendOnlyFile::sync() {
  if (::fsync(fd_.get()) != 0) throw_write_error(path_, "written", errno);
}

}  // namespace ferry
