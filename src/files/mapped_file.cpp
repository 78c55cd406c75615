#include "src/files/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/out_of_memory.h"

namespace ferry {

MappedFile MappedFile::open(const std::filesystem::path& path) {
  const PlainFile opened = open_plain_file(path);
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
  const size_t page_bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t n_pages = (opened.size_bytes + page_bytes - 1) / page_bytes;
  file.bytes_ = {static_cast<const std::byte*>(address), opened.size_bytes};
  file.pages_ = NotedPages({file.bytes_.data(), n_pages * page_bytes}, path);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, {})),
      pages_(std::move(other.pages_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(pages_, other.pages_);
  return *this;
}

MappedFile::~MappedFile() {
  pages_ = NotedPages();  // first: the addresses may soon be another file's
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace ferry
