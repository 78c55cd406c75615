#pragma once
// A file mapped read-only for its lifetime. The readers of src/files stand on it; a path comes in,
// bytes that live as long as the object go out. A page that can no longer be read is SIGBUS
// (src/files/lost_pages.h).

#include <cstddef>
#include <filesystem>
#include <span>

#include "src/files/lost_pages.h"
#include "src/files/plain_file.h"

namespace ferry {

/** A whole file, mapped read-only. Moving keeps the address of the bytes. */
class MappedFile {
 public:
  /** Throws Error(data) when the file is missing or not a plain file, Error(machine) when it cannot
   * be mapped. */
  static MappedFile open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  MappedFile() = default;

  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
  NotedPages pages_;
};

}  // namespace ferry
