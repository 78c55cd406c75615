#include "src/engine/state/drive_states.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace ferry {
namespace {

/** The slots through which states pass: the drive may know them beforehand. Not in a device's
 * memory, which may be given away and be other pages afterwards. */
std::span<std::byte> window_of(const StepShape& shape, const RunMemory& memory) {
  const std::vector<RegionId>& slots = memory.layout().state_slots;
  if (slots.empty() || shape.computes_on_host) return {};
  const auto slot_bytes = memory.layout().region(slots.front()).n_bytes;
  return {memory.at(slots.front()), slots.size() * static_cast<size_t>(slot_bytes)};
}

}  // namespace

int64_t drive_store_bytes(const StepShape& shape, int n_kept) {
  std::vector<StoredSegment> segments = StateStore::segments_of(shape);
  return segments.empty() ? 0 : StoreLayout(std::move(segments), n_kept).n_bytes();
}

DriveStates::DriveStates(const StepShape& shape,
                         const RunMemory& memory,
                         const DriveOptions& options) {
  std::vector<StoredSegment> segments = StateStore::segments_of(shape);
  if (segments.empty()) return;
  FERRY_CHECK(options.open, "states on a drive, and nobody who opens it");
  const auto fault = StoreLayout::fault_in(segments, options.n_kept);
  FERRY_CHECK(!fault, "{}", *fault);
  Disk& disk =
      options.open(StoreLayout(segments, options.n_kept).n_bytes(), window_of(shape, memory));
  std::string uuid = options.uuid;
  if (uuid.empty())
    uuid = ExtentStore::create(disk, std::move(segments), options.n_kept, options.run);
  extents_.emplace(disk, StoreIdentity{.run = options.run, .uuid = uuid});
  extents_->start_anew();  // whoever goes on from a generation says so
  states_.emplace(shape, *extents_);
}

}  // namespace ferry
