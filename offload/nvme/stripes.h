#pragma once
// The place of a disk's bytes in its files: in stripes, dealt out file by file, so that one large
// request keeps all drives busy.

#include <algorithm>
#include <cstdint>

#include "src/base/bytes.h"

namespace ferry {

/** The unit of offsets, sizes and addresses past the page cache, on every drive in use; the size of
 * file systems' blocks too: what is smaller makes them read before they write. */
inline constexpr int64_t kDiskAlignment_bytes = 4096;
/** Large beside a drive's own transfers, small beside a segment. */
inline constexpr int64_t kStripe_bytes = 2 * kMiB;

struct Stripes {
  int n_files = 1;

  struct Place {
    int file = 0;
    int64_t offset_bytes = 0;  ///< in that file
    int64_t n_bytes = 0;       ///< from there on in one piece
  };

  /** The first of n_bytes from `offset_bytes` on. */
  Place find(int64_t offset_bytes, int64_t n_bytes) const {
    if (n_files == 1) return {0, offset_bytes, n_bytes};
    const int64_t stripe = offset_bytes / kStripe_bytes, within = offset_bytes % kStripe_bytes;
    return {static_cast<int>(stripe % n_files), stripe / n_files * kStripe_bytes + within,
            std::min(n_bytes, kStripe_bytes - within)};
  }

  /** The size of each file of a disk of n_bytes. */
  int64_t file_bytes(int64_t n_bytes) const {
    if (n_files == 1) return n_bytes;
    return round_up(n_bytes, kStripe_bytes * n_files) / n_files;
  }
};

}  // namespace ferry
