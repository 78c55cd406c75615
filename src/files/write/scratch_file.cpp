#include "src/files/write/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

#include "src/files/write/direct_writer.h"
#include "src/files/write/write_error.h"

namespace ferry {

ScratchFile::ScratchFile(std::filesystem::path beside) : beside_(std::move(beside)) {
  const std::filesystem::path directory =
      beside_.has_parent_path() ? beside_.parent_path() : std::filesystem::path(".");
  fd_ = UniqueFd(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd_) return;
  // File systems that have no files without names.
  std::string name = (directory / fmt::format(".{}.XXXXXX", beside_.filename().string())).string();
  fd_ = UniqueFd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd_) throw_write_error(beside_, "created", errno);
  ::unlink(name.c_str());
}

void ScratchFile::append(std::span<const std::byte> bytes) {
  if (const int code = write_all(fd_.get(), n_bytes_, bytes))
    throw_write_error(beside_, "written", code);
  n_bytes_ += static_cast<int64_t>(bytes.size());
}

void ScratchFile::read_at(int64_t offset_bytes, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(fd_.get(), into.data(), into.size(), offset_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw_write_error(beside_, "read back", count < 0 ? errno : EIO);
    into = into.subspan(static_cast<size_t>(count));
    offset_bytes += count;
  }
}

}  // namespace ferry
