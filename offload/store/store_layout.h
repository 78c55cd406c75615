#pragma once
// The space of a store of segments on a drive: the extents that each segment is cut into, the
// number of copies that there is room for, and the place of each copy. Pure arithmetic, no drive: a
// plan asks for the bytes, the store (store.h) for the offsets. store.md draws the file.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/bytes.h"

namespace ferry {

/** All of a store lies at multiples of it: no drive in use asks for more. */
inline constexpr int64_t kStorePage_bytes = 4096;
/** The most checkpoints that one store has room for. */
inline constexpr int kKept_max = 32;
/** The most that a generation's metadata may take. */
inline constexpr int64_t kMetadata_bytes_max = 64 * kKiB;
inline constexpr size_t kSegmentName_max = 15;
inline constexpr int64_t kSegments_max = 1500;

/** Bytes of a block that a store holds: its weights, states, ... */
struct StoredSegment {
  int block = 0;
  std::string name;                 ///< "states.0"; at most 15 characters
  int64_t n_bytes = 0;              ///< stored as a multiple of a page
  int64_t extent_bytes = 4 * kMiB;  ///< what is read, written and checked as one: whole pages
  /** Scratch, such as gradients: written in place and gone when the store is closed. */
  bool is_volatile = false;
};

/** Index into the list of segments that a store was made of. */
using SegmentId = int;

class StoreLayout {
 public:
  /** Why there can be no such store: "block 3 has states.0 twice"; nothing where there can. */
  static std::optional<std::string> fault_in(std::span<const StoredSegment> segments, int n_kept);

  /** n_kept: checkpoints that the store has room for, beside the generation that was committed last
   * and the one that is being written. Segments that have a fault are the caller's bug. */
  StoreLayout(std::vector<StoredSegment> segments, int n_kept);

  int n_kept() const { return n_kept_; }
  int n_segments() const { return static_cast<int>(segments_.size()); }
  const StoredSegment& segment(SegmentId id) const { return segments_[static_cast<size_t>(id)]; }

  /** Bytes of the whole store. */
  int64_t n_bytes() const { return volatile_begin_bytes_ + volatile_bytes_; }
  /** Bytes of a segment with the end of its last page: what its readers and writers give. */
  int64_t padded_bytes(SegmentId id) const {
    return round_up(segment(id).n_bytes, kStorePage_bytes);
  }
  int64_t n_extents(SegmentId id) const {
    return (segment(id).n_bytes + segment(id).extent_bytes - 1) / segment(id).extent_bytes;
  }
  /** Bytes of one extent: a segment's last may be shorter. */
  int64_t extent_bytes(SegmentId id, int64_t extent) const;
  /** The memory of an extent in that of its whole segment. */
  template <typename Byte>
  std::span<Byte> part_of(std::span<Byte> all, SegmentId id, int64_t extent) const {
    return all.subspan(static_cast<size_t>(extent * segment(id).extent_bytes),
                       static_cast<size_t>(extent_bytes(id, extent)));
  }
  int64_t extent_bytes_max() const { return extent_bytes_max_; }

  /** Extents that generations have: numbered first. */
  int64_t n_lasting_extents() const { return n_lasting_extents_; }
  /** All extents, volatile ones too. */
  int64_t n_extents() const { return n_extents_; }
  /** The number of an extent among all. */
  int64_t index_of(SegmentId id, int64_t extent) const {
    return begins_[static_cast<size_t>(id)].extent + extent;
  }

  /** Copies of each lasting extent that there is room for. */
  int n_copies() const { return n_kept_ + 2; }
  /** Offset of an extent's copy in the store. A volatile extent has copy 0 alone. */
  int64_t offset_of(SegmentId id, int64_t extent, int copy) const;

  int64_t superblock_offset(int copy) const { return copy * kSuperblock_bytes; }
  static constexpr int64_t superblock_bytes() { return kSuperblock_bytes; }
  /** Two maps that take turns, each written twice: one page each. */
  int64_t map_offset(int map, int copy) const {
    return kSuperblocks * kSuperblock_bytes + (2 * map + copy) * kStorePage_bytes;
  }
  /** Tables of extents: one for each generation that may be kept, one for the next. */
  int n_tables() const { return n_copies(); }
  int64_t table_offset(int table) const;
  /** The most that one takes. */
  int64_t table_bytes() const { return table_bytes_; }
  /** A table is a head, some bytes an extent, and metadata. */
  static constexpr int64_t kTableHead_bytes = 32, kTableExtent_bytes = 5;

 private:
  static constexpr int64_t kSuperblock_bytes = 64 * kKiB;
  static constexpr int kSuperblocks = 2;
  /** The beginning of a segment. */
  struct Begin {
    int64_t extent = 0;
    int64_t offset_bytes = 0;  ///< in a copy of all lasting segments, or among the volatile ones
  };

  std::vector<StoredSegment> segments_;
  std::vector<Begin> begins_;
  int n_kept_;
  int64_t n_lasting_extents_ = 0, n_extents_ = 0;
  int64_t extent_bytes_max_ = 0;
  int64_t table_bytes_ = 0;
  int64_t copy_bytes_ = 0, volatile_bytes_ = 0;
  int64_t data_begin_bytes_ = 0, volatile_begin_bytes_ = 0;
};

/** The space that a store takes: lasting segments x (2 + n_kept), volatile ones once, and under
 * 0.1 % for maps where extents are of 1 MiB or more. */
int64_t store_bytes(std::vector<StoredSegment> segments, int n_kept);

}  // namespace ferry
