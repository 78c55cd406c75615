#include "offload/store/store_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr int64_t kSegment_bytes_max = int64_t{1} << 44;  // sums of the most segments fit 64 bits
constexpr int64_t kExtents_max = int64_t{1} << 24;        // a table of 80 MiB

std::optional<std::string> fault_in(const StoredSegment& segment) {
  const auto fault = [&](std::string_view what) {
    return fmt::format("'{}' of block {} {}", segment.name, segment.block, what);
  };
  if (segment.block < 0) return fault("has a block below 0");
  if (segment.name.empty() || segment.name.size() > kSegmentName_max)
    return fault(fmt::format("has a name of {} characters, not 1 to {}", segment.name.size(),
                             kSegmentName_max));
  if (segment.n_bytes <= 0 || segment.n_bytes > kSegment_bytes_max)
    return fault(fmt::format("has {} bytes", segment.n_bytes));
  if (segment.extent_bytes <= 0 || segment.extent_bytes > kGiB ||
      segment.extent_bytes % kStorePage_bytes != 0)
    return fault(fmt::format("has extents of {} bytes", segment.extent_bytes));
  return {};
}

}  // namespace

std::optional<std::string> StoreLayout::fault_in(std::span<const StoredSegment> segments,
                                                 int n_kept) {
  if (n_kept < 0 || n_kept > kKept_max)
    return fmt::format("{} checkpoints are to be kept, not 0 to {}", n_kept, kKept_max);
  if (std::ssize(segments) > kSegments_max)
    return fmt::format("there are {} segments, at most {} can be", segments.size(), kSegments_max);
  std::set<std::pair<int, std::string_view>> names;
  int64_t n_extents = 0;
  for (const StoredSegment& segment : segments) {
    if (auto fault = ferry::fault_in(segment)) return fault;
    if (!names.insert({segment.block, segment.name}).second)
      return fmt::format("block {} has '{}' twice", segment.block, segment.name);
    n_extents += segment.n_bytes / segment.extent_bytes + 1;
  }
  if (n_extents > kExtents_max)
    return fmt::format("there are {} extents, at most {} can be", n_extents, kExtents_max);
  return {};
}

StoreLayout::StoreLayout(std::vector<StoredSegment> segments, int n_kept)
    : segments_(std::move(segments)), begins_(segments_.size()), n_kept_(n_kept) {
  const auto fault = fault_in(segments_, n_kept_);
  FERRY_CHECK(!fault, "{}", *fault);
  for (const bool is_volatile : {false, true}) {
    int64_t& n_bytes = is_volatile ? volatile_bytes_ : copy_bytes_;
    for (SegmentId id = 0; id < n_segments(); ++id) {
      if (segment(id).is_volatile != is_volatile) continue;
      begins_[static_cast<size_t>(id)] = {n_extents_, n_bytes};
      n_extents_ += n_extents(id);
      n_bytes += padded_bytes(id);
      extent_bytes_max_ = std::max(extent_bytes_max_, extent_bytes(id, 0));
    }
    if (!is_volatile) n_lasting_extents_ = n_extents_;
  }
  table_bytes_ =
      round_up(kTableHead_bytes + n_lasting_extents_ * kTableExtent_bytes + kMetadata_bytes_max,
               kStorePage_bytes);
  data_begin_bytes_ = table_offset(n_tables());
  volatile_begin_bytes_ = data_begin_bytes_ + n_copies() * copy_bytes_;
}

int64_t StoreLayout::extent_bytes(SegmentId id, int64_t extent) const {
  const int64_t size_bytes = segment(id).extent_bytes;
  return std::min(size_bytes, padded_bytes(id) - extent * size_bytes);
}

int64_t StoreLayout::table_offset(int table) const {
  return map_offset(2, 0) + table * table_bytes_;
}

int64_t StoreLayout::offset_of(SegmentId id, int64_t extent, int copy) const {
  const int64_t begin_bytes =
      segment(id).is_volatile ? volatile_begin_bytes_ : data_begin_bytes_ + copy * copy_bytes_;
  return begin_bytes + begins_[static_cast<size_t>(id)].offset_bytes +
         extent * segment(id).extent_bytes;
}

int64_t store_bytes(std::vector<StoredSegment> segments, int n_kept) {
  return StoreLayout(std::move(segments), n_kept).n_bytes();
}

}  // namespace ferry
