#include "offload/store/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "offload/store/store_requests.h"
#include "src/base/crc32c.h"
#include "src/base/error.h"

namespace ferry {

// --- Which generations there are ---------------------------------------------------------------

const Generation& ExtentStore::committed() const {
  std::lock_guard lock(state_mutex_);
  return map_.committed.generation == 0 ? none_ : table(map_.committed.table);
}

bool ExtentStore::is_written(SegmentId segment) const {
  std::lock_guard lock(state_mutex_);
  for (int64_t extent = 0; extent < layout_.n_extents(segment); ++extent)
    if (newest_.copies[static_cast<size_t>(layout_.index_of(segment, extent))] == kNoCopy)
      return false;
  return true;
}

std::vector<std::string> ExtentStore::pins() const {
  std::lock_guard lock(state_mutex_);
  std::vector<std::string> names;
  for (const Pin& pin : map_.pins)
    names.push_back(pin.name);
  return names;
}

const Pin* ExtentStore::find_pin(std::string_view name) const {
  const auto found = std::ranges::find(map_.pins, name, &Pin::name);
  return found == map_.pins.end() ? nullptr : &*found;
}

const Generation& ExtentStore::pinned(std::string_view name) const {
  std::lock_guard lock(state_mutex_);
  const Pin* pin = find_pin(name);
  if (!pin)
    throw Error(Fault::usage, "store.open", fmt::format("'{}' keeps no '{}'", this->name(), name));
  return table(pin->kept.table);
}

void ExtentStore::check_usable() const {
  FERRY_CHECK(access_ == Access::read_and_write, "'{}' was opened to be read", name());
  if (has_failed_)
    throw Error(Fault::machine, "store.write",
                fmt::format("a write to '{}' failed, so it takes no more", name()),
                "what was committed before is whole: mend the drive, and resume the run");
}

// --- Reads and writes of extents -----------------------------------------------------------------

std::string ExtentStore::name_of(const Generation& from, SegmentId segment, int64_t extent) const {
  std::lock_guard lock(state_mutex_);
  const auto index = static_cast<size_t>(layout_.index_of(segment, extent));
  const Generation& last = map_.committed.generation == 0 ? none_ : table(map_.committed.table);
  // An extent that the next generation has not written yet is the last one's.
  const bool is_of_last = &from == &newest_ && from.copies[index] == last.copies[index];
  const int64_t number = is_of_last ? last.number : from.number;
  std::string checkpoint;
  for (const Pin& pin : map_.pins) {
    if (pin.kept.generation == number) checkpoint = fmt::format(" ({})", pin.name);
  }
  const StoredSegment& stored = layout_.segment(segment);
  return fmt::format("extent {} of block {}'s {} in generation {}{} of '{}', at byte {}", extent,
                     stored.block, stored.name, number, checkpoint, name(),
                     layout_.offset_of(segment, extent, from.copies[index]));
}

PendingRead ExtentStore::start_read(const Generation& from,
                                    SegmentId segment,
                                    int64_t extent,
                                    std::span<std::byte> to) const {
  const auto index = static_cast<size_t>(layout_.index_of(segment, extent));
  FERRY_CHECK(std::ssize(to) == layout_.extent_bytes(segment, extent), "{} bytes for {}", to.size(),
              layout_.extent_bytes(segment, extent));
  if (!from.damage.empty())
    throw Error(Fault::data, "store.read", from.damage, "resume from another checkpoint");
  const StoredSegment& stored = layout_.segment(segment);
  FERRY_CHECK(from.copies[index] != kNoCopy, "extent {} of block {}'s {} was never written", extent,
              stored.block, stored.name);
  FERRY_CHECK(&from != &newest_ || states_[index] == ExtentState::idle,
              "extent {} of block {}'s {} is being written", extent, stored.block, stored.name);
  const int64_t offset = layout_.offset_of(segment, extent, from.copies[index]);
  return {disk_.read(offset, to), &from, segment, extent, to};
}

void ExtentStore::wait(const PendingRead& read) const {
  disk_.wait(read.ticket);
  const auto index = static_cast<size_t>(layout_.index_of(read.segment, read.extent));
  if (crc32c(read.to) != read.from->crcs[index])
    throw Error(Fault::data, "store.read",
                name_of(*read.from, read.segment, read.extent) +
                    ", is not what was written: its checksum is wrong",
                "the drive, its cable or the memory changed it: resume from another checkpoint");
}

/** The first place that no generation names which is kept: all extents of a step take the same
 * one, so that they lie in order. */
int ExtentStore::place_to_write(SegmentId segment, int64_t extent) const {
  if (layout_.segment(segment).is_volatile) return 0;
  const auto index = static_cast<size_t>(layout_.index_of(segment, extent));
  uint64_t taken = 0;
  const auto take = [&](const KeptGeneration& kept) {
    const uint8_t copy = table(kept.table).copies[index];
    if (copy != kNoCopy) taken |= uint64_t{1} << copy;
  };
  if (map_.committed.generation != 0) take(map_.committed);
  for (const Pin& pin : map_.pins)
    take(pin.kept);
  const int place = std::countr_one(taken);
  FERRY_CHECK(place < layout_.n_copies(), "{} generations in {} copies", map_.pins.size() + 1,
              layout_.n_copies());
  return place;
}

PendingWrite ExtentStore::start_write(SegmentId segment,
                                      int64_t extent,
                                      std::span<const std::byte> from) {
  FERRY_CHECK(std::ssize(from) == layout_.extent_bytes(segment, extent), "{} bytes for {}",
              from.size(), layout_.extent_bytes(segment, extent));
  const uint32_t crc = crc32c(from);
  const int64_t number = layout_.index_of(segment, extent);
  const auto index = static_cast<size_t>(number);
  const bool is_lasting = number < layout_.n_lasting_extents();
  int place = 0;
  {
    std::lock_guard lock(state_mutex_);
    check_usable();
    FERRY_CHECK(!is_committing_ || !is_lasting, "extent {} is written in a commit", number);
    FERRY_CHECK(states_[index] == ExtentState::idle, "extent {} is being written", number);
    place = place_to_write(segment, extent);
    newest_.copies[index] = static_cast<uint8_t>(place);
    newest_.crcs[index] = crc;
    states_[index] = ExtentState::writing;
    n_writing_ += is_lasting;
  }
  try {
    return {disk_.write(layout_.offset_of(segment, extent, place), from), number};
  } catch (...) {
    has_failed_ = true;
    end_write(number);
    throw;
  }
}

void ExtentStore::wait(const PendingWrite& write) {
  try {
    disk_.wait(write.ticket);
  } catch (...) {
    has_failed_ = true;
    end_write(write.index);
    throw;
  }
  end_write(write.index);
}

void ExtentStore::end_write(int64_t index) {
  std::lock_guard lock(state_mutex_);
  states_[static_cast<size_t>(index)] = ExtentState::idle;
  n_writing_ -= index < layout_.n_lasting_extents();
}

void ExtentStore::read_segment(const Generation& from,
                               SegmentId segment,
                               std::span<std::byte> to) const {
  FERRY_CHECK(std::ssize(to) == layout_.padded_bytes(segment), "{} bytes for {}", to.size(),
              layout_.padded_bytes(segment));
  run_ahead(
      layout_.n_extents(segment),
      [&](int64_t i) { return start_read(from, segment, i, layout_.part_of(to, segment, i)); },
      [&](const PendingRead& read) { wait(read); });
}

void ExtentStore::write_segment(SegmentId segment, std::span<const std::byte> from) {
  FERRY_CHECK(std::ssize(from) == layout_.padded_bytes(segment), "{} bytes for {}", from.size(),
              layout_.padded_bytes(segment));
  run_ahead(
      layout_.n_extents(segment),
      [&](int64_t i) { return start_write(segment, i, layout_.part_of(from, segment, i)); },
      [&](const PendingWrite& write) { wait(write); });
}

// --- Commits and checkpoints ---------------------------------------------------------------------

int64_t ExtentStore::commit(std::string_view metadata) {
  FERRY_CHECK(std::ssize(metadata) <= kMetadata_bytes_max, "{} bytes", metadata.size());
  std::lock_guard map_lock(map_mutex_);
  {
    std::lock_guard lock(state_mutex_);
    check_usable();
    if (!newest_.damage.empty())
      throw Error(Fault::data, "store.commit", newest_.damage, "resume from another checkpoint");
    FERRY_CHECK(n_writing_ == 0, "{} extents are being written", n_writing_);
    is_committing_ = true;
  }
  try {
    StoreMap map = map_;
    map.committed = write_table(metadata);
    // The map may name only what is durable.
    disk_.flush();
    write_map(std::move(map));
  } catch (...) {
    has_failed_ = true;
    end_commit();
    throw;
  }
  end_commit();
  return map_.committed.generation;
}

void ExtentStore::end_commit() {
  std::lock_guard lock(state_mutex_);
  newest_.number = map_.committed.generation + 1;
  is_committing_ = false;
}

/** The one more than can be kept. */
int ExtentStore::free_table() const {
  uint64_t taken = map_.committed.generation == 0 ? 0 : uint64_t{1} << map_.committed.table;
  for (const Pin& pin : map_.pins)
    taken |= uint64_t{1} << pin.kept.table;
  return std::countr_one(taken);
}

KeptGeneration ExtentStore::write_table(std::string_view metadata) {
  const int index = free_table();
  Generation& generation = tables_[static_cast<size_t>(index)];
  const auto n = static_cast<size_t>(layout_.n_lasting_extents());
  std::copy_n(newest_.copies.begin(), n, generation.copies.begin());
  std::copy_n(newest_.crcs.begin(), n, generation.crcs.begin());
  const auto lasting = std::span(generation.copies).first(n);
  FERRY_CHECK(std::ranges::find(lasting, kNoCopy) == lasting.end(), "an extent was never written");
  generation.number = newest_.number;
  generation.metadata = metadata;
  generation.damage.clear();
  const int64_t n_bytes = encode_table(generation, layout_, bytes_of(buffer_));
  const auto bytes = bytes_of(buffer_).first(static_cast<size_t>(n_bytes));
  write_now(disk_, {{layout_.table_offset(index), bytes}});
  return {generation.number, index, n_bytes, crc32c(bytes)};
}

/** In the place of the older map: a torn one leaves the other. */
void ExtentStore::write_map(StoreMap map) {
  map.sequence = map_.sequence + 1;
  const int place = 1 - map_place_;
  encode_map(map, identity().uuid, buffer_[0]);
  const std::span<const std::byte> bytes = buffer_[0].bytes;
  write_now(disk_, {{layout_.map_offset(place, 0), bytes}, {layout_.map_offset(place, 1), bytes}});
  disk_.flush();
  std::lock_guard lock(state_mutex_);
  map_ = std::move(map);
  map_place_ = place;
}

void ExtentStore::start_from(const Generation& generation) {
  if (!generation.damage.empty())
    throw Error(Fault::data, "store.open", generation.damage, "resume from another checkpoint");
  std::lock_guard lock(state_mutex_);
  FERRY_CHECK(n_writing_ == 0 && !is_committing_, "{} extents are being written", n_writing_);
  const auto n = static_cast<size_t>(layout_.n_lasting_extents());
  std::copy_n(generation.copies.begin(), n, newest_.copies.begin());
  std::copy_n(generation.crcs.begin(), n, newest_.crcs.begin());
  newest_.damage.clear();
}

void ExtentStore::start_anew() {
  std::lock_guard lock(state_mutex_);
  FERRY_CHECK(n_writing_ == 0 && !is_committing_, "{} extents are being written", n_writing_);
  newest_.copies = none_.copies;
  newest_.damage.clear();
}

void ExtentStore::pin(std::string_view name) {
  FERRY_CHECK(!name.empty() && name.size() <= kCheckpointName_max, "'{}'", name);
  std::lock_guard map_lock(map_mutex_);
  check_usable();
  FERRY_CHECK(map_.committed.generation != 0, "nothing was committed");
  FERRY_CHECK(!find_pin(name), "'{}' is kept already", name);
  if (std::ssize(map_.pins) >= layout_.n_kept())
    throw Error(Fault::does_not_fit, "store.pin",
                fmt::format("'{}' has room for {} checkpoints and keeps {}", this->name(),
                            layout_.n_kept(), fmt::join(pins(), ", ")),
                "delete one of them first");
  StoreMap map = map_;
  map.pins.push_back({std::string(name), map.committed});
  change_map(std::move(map));
}

void ExtentStore::unpin(std::string_view name) {
  std::lock_guard map_lock(map_mutex_);
  check_usable();
  if (!find_pin(name))
    throw Error(Fault::usage, "store.unpin", fmt::format("'{}' keeps no '{}'", this->name(), name));
  StoreMap map = map_;
  std::erase_if(map.pins, [&](const Pin& pin) { return pin.name == name; });
  change_map(std::move(map));
}

void ExtentStore::change_map(StoreMap map) {
  try {
    write_map(std::move(map));
  } catch (...) {
    has_failed_ = true;
    throw;
  }
}

}  // namespace ferry
