#pragma once
// A file without a name that goes with its owner: what is too large for the memory until it is put
// where it belongs.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "src/base/unique_fd.h"

namespace ferry {

/** Failures are Error(machine), DiskFull where it is. */
class ScratchFile {
 public:
  /** `beside`: a file of whose directory it takes the space. */
  explicit ScratchFile(std::filesystem::path beside);

  void append(std::span<const std::byte> bytes);
  int64_t n_bytes() const { return n_bytes_; }
  /** Bytes of it from an offset on; they are there. */
  void read_at(int64_t offset_bytes, std::span<std::byte> into) const;

 private:
  std::filesystem::path beside_;
  UniqueFd fd_;
  int64_t n_bytes_ = 0;
};

}  // namespace ferry
