#pragma once
// A store in a real file, for the tests that kill a process that writes to it.

#include <filesystem>
#include <memory>
#include <vector>

#include "offload/nvme/open_disk.h"
#include "tests/offload/store/store_cases.h"

namespace ferry::test {

inline constexpr size_t kFileKept = 2;

/** As small_segments(), in an order of size at which a commit is long enough to be hit. */
inline std::vector<StoredSegment> file_segments() {
  auto segments = small_segments();
  for (StoredSegment& segment : segments) {
    segment.n_bytes *= 100;
    segment.extent_bytes *= 32;
  }
  return segments;
}

/** Opens the file, or makes it. */
inline std::unique_ptr<FileDisk> open_store_file(const std::filesystem::path& file) {
  return open_disk({file}, store_bytes(file_segments(), kFileKept));
}

}  // namespace ferry::test
