// How a store begins, and how it is found again: after a cut of power too, and with damage.

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include "offload/store/fixed_copy.h"
#include "offload/store/store.h"
#include "offload/store/store_requests.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr const char* kOpen = "store.open";

std::string new_uuid() {
  std::array<unsigned char, kUuid_length / 2> random;
  if (::getrandom(random.data(), random.size(), 0) != std::ssize(random))
    throw Error(Fault::machine, "store.create", "the system gave no random bytes");
  std::string text;
  for (const unsigned char byte : random)
    text += fmt::format("{:02x}", byte);
  return text;
}

void check_identity(const Disk& disk, const StoreIdentity& found, const StoreIdentity& expected) {
  const char* hint = "is another drive mounted there now?";
  if (!expected.run.empty() && expected.run != found.run)
    throw Error(Fault::data, kOpen,
                fmt::format("'{}' holds the states of the run '{}', not of '{}'", disk.name(),
                            found.run, expected.run),
                hint);
  if (!expected.uuid.empty() && expected.uuid != found.uuid)
    throw Error(
        Fault::data, kOpen,
        fmt::format("'{}' holds the store {}, not {}", disk.name(), found.uuid, expected.uuid),
        hint);
}

/** The first copy that is whole; nothing, and the fault of copy 0, where there is none. */
std::optional<Superblock> find_superblock(Disk& disk, std::string& fault) {
  FERRY_CHECK(kStorePage_bytes % disk.alignment() == 0, "{}", disk.alignment());
  std::vector<StorePage> area(kSuperblock_pages);
  fault = "it is too short";
  for (int copy = 0; copy < 2; ++copy) {
    const int64_t offset = copy * StoreLayout::superblock_bytes();
    if (offset + StoreLayout::superblock_bytes() > disk.n_bytes()) break;
    std::string fault_of_copy;
    auto found = try_decode(disk, offset, bytes_of(area), fault_of_copy,
                            [&] { return decode_superblock(bytes_of(area)); });
    if (found) return found;
    if (copy == 0) fault = fault_of_copy;
  }
  return {};
}

Superblock read_superblock(Disk& disk, const StoreIdentity& expected) {
  std::string fault;
  auto found = find_superblock(disk, fault);
  if (!found)
    throw Error(
        Fault::data, kOpen,
        fmt::format("'{}' holds no store of states, or a damaged one: {}", disk.name(), fault),
        "is it the right path, and is its drive mounted?");
  check_identity(disk, found->identity, expected);
  const int64_t n_bytes = store_bytes(found->segments, found->n_kept);
  if (n_bytes > disk.n_bytes())
    throw Error(Fault::data, kOpen,
                fmt::format("the store in '{}' has {} bytes, and {} are there", disk.name(),
                            n_bytes, disk.n_bytes()),
                "was it copied to its end?");
  return std::move(*found);
}

Generation unwritten(const StoreLayout& layout) {
  const auto n = static_cast<size_t>(layout.n_extents());
  return {.copies = std::vector<uint8_t>(n, kNoCopy), .crcs = std::vector<uint32_t>(n)};
}

}  // namespace

std::string ExtentStore::create(Disk& disk,
                                std::vector<StoredSegment> segments,
                                int n_kept,
                                std::string_view run) {
  const char* where = "store.create";
  if (const auto fault = StoreLayout::fault_in(segments, n_kept))
    throw Error(Fault::usage, where, *fault);
  if (run.size() > kRunName_max)
    throw Error(Fault::usage, where,
                fmt::format("'{}' has more than {} characters", run, kRunName_max));
  const Superblock superblock = {{std::string(run), new_uuid()}, n_kept, std::move(segments)};
  const StoreLayout layout(superblock.segments, n_kept);
  if (layout.n_bytes() > disk.n_bytes())
    throw Error(Fault::does_not_fit, where,
                fmt::format("the states take {} with {} checkpoints kept, and '{}' has {}",
                            format_bytes(layout.n_bytes()), n_kept, disk.name(),
                            format_bytes(disk.n_bytes())));
  std::string fault;
  if (const auto other = find_superblock(disk, fault); other && other->identity.run != run)
    throw Error(
        Fault::usage, where,
        fmt::format("'{}' holds the states of the run '{}'", disk.name(), other->identity.run),
        "name another file, or delete this one if that run is not needed any more");
  std::vector<StorePage> area(kSuperblock_pages), maps(2);
  const auto write_superblocks = [&] {
    write_now(disk, {{layout.superblock_offset(0), bytes_of(area)},
                     {layout.superblock_offset(1), bytes_of(area)}});
    disk.flush();
  };
  // A store that was there is whole until it is none, and a new one has a map before it is one.
  write_superblocks();
  for (int place = 0; place < 2; ++place)
    encode_map({.sequence = place + 1}, superblock.identity.uuid, maps[static_cast<size_t>(place)]);
  write_now(disk, {{layout.map_offset(0, 0), maps[0].bytes},
                   {layout.map_offset(0, 1), maps[0].bytes},
                   {layout.map_offset(1, 0), maps[1].bytes},
                   {layout.map_offset(1, 1), maps[1].bytes}});
  disk.flush();
  encode_superblock(superblock, bytes_of(area));
  write_superblocks();
  return superblock.identity.uuid;
}

ExtentStore::ExtentStore(Disk& disk, const StoreIdentity& expected, Access access)
    : disk_(disk),
      access_(access),
      superblock_(read_superblock(disk, expected)),
      layout_(superblock_.segments, superblock_.n_kept),
      tables_(static_cast<size_t>(layout_.n_tables()), unwritten(layout_)),
      none_(unwritten(layout_)),
      newest_(none_),
      states_(static_cast<size_t>(layout_.n_extents()), ExtentState::idle),
      buffer_(static_cast<size_t>(layout_.table_bytes() / kStorePage_bytes)) {
  open_map();
  if (map_.committed.generation != 0) load_table(map_.committed);
  for (const Pin& pin : map_.pins)
    load_table(pin.kept);
  newest_ = committed();
  newest_.number = map_.committed.generation + 1;
  mend_copies();
  // A process that was killed may have left a map that is read now and not durable yet: its
  // extents may be overwritten only when it is.
  if (access_ == Access::read_and_write) disk_.flush();
}

/** Takes the newest map of which a copy is whole. */
void ExtentStore::open_map() {
  std::string fault;
  for (int place = 0; place < 2; ++place) {
    bool is_whole = false;
    for (int copy = 0; copy < 2; ++copy) {
      const auto found =
          try_decode(disk_, layout_.map_offset(place, copy), buffer_[0].bytes, fault,
                     [&] { return decode_map(buffer_[0], identity().uuid, layout_); });
      if (!found) continue;
      is_whole = true;
      if (found->sequence <= map_.sequence) continue;
      map_ = *found;
      map_place_ = place;
    }
    if (!is_whole)
      notes_.push_back(
          fmt::format("map {} of '{}', at byte {}, was cut while it was written, or is damaged: {}",
                      place, name(), layout_.map_offset(place, 0), fault));
  }
  if (map_.sequence == 0)
    throw Error(Fault::data, kOpen, fmt::format("'{}' has no whole map: {}", name(), fault),
                "its states are lost: start from a checkpoint that lies elsewhere");
}

/** A damaged table spoils its own generation alone. */
void ExtentStore::load_table(const KeptGeneration& kept) {
  Generation& generation = tables_[static_cast<size_t>(kept.table)];
  if (generation.number == kept.generation) return;
  const auto bytes = bytes_of(buffer_).first(static_cast<size_t>(kept.table_bytes));
  std::string fault;
  if (try_decode(disk_, layout_.table_offset(kept.table), bytes, fault, [&] {
        decode_table(bytes, kept, layout_, generation);
        return true;
      }))
    return;
  generation.number = kept.generation;
  generation.damage = table_damage(kept, fault);
  notes_.push_back(generation.damage);
}

void ExtentStore::mend_copies() {
  for (const FixedCopy& copy : fixed_copies()) {
    const auto fault = fault_in(copy);
    if (!fault) continue;
    notes_.push_back(*fault);
    if (access_ == Access::read_and_write)
      write_now(disk_, {{copy.offset, std::as_bytes(std::span(copy.right))}});
  }
}

}  // namespace ferry
