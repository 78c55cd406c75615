// Reads all that a store keeps, and names what is damaged.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "offload/store/fixed_copy.h"
#include "offload/store/store.h"
#include "offload/store/store_requests.h"
#include "src/base/crc32c.h"

namespace ferry {
namespace {

/** One place where an extent lies. */
struct ExtentPlace {
  SegmentId segment = 0;
  int64_t extent = 0;
  uint8_t copy = 0;
};

/** Each place that a generation names, once. */
std::vector<ExtentPlace> places_of(const StoreLayout& layout,
                                   std::span<const Generation* const> generations) {
  std::vector<ExtentPlace> places;
  for (SegmentId segment = 0; segment < layout.n_segments(); ++segment) {
    for (int64_t extent = 0; extent < layout.n_extents(segment); ++extent) {
      const auto index = static_cast<size_t>(layout.index_of(segment, extent));
      uint64_t seen = 0;
      for (const Generation* generation : generations) {
        const uint8_t copy = generation->copies[index];
        if (copy == kNoCopy || (seen >> copy & 1) != 0) continue;
        seen |= uint64_t{1} << copy;
        places.push_back({segment, extent, copy});
      }
    }
  }
  return places;
}

}  // namespace

std::vector<ExtentStore::FixedCopy> ExtentStore::superblocks() const {
  std::vector<FixedCopy> copies;
  std::vector<StorePage> superblock(kSuperblock_pages);
  encode_superblock(superblock_, bytes_of(superblock));
  for (int copy = 0; copy < 2; ++copy)
    copies.push_back({fmt::format("copy {} of the superblock", copy),
                      layout_.superblock_offset(copy), superblock});
  return copies;
}

std::vector<ExtentStore::FixedCopy> ExtentStore::fixed_copies() const {
  std::vector<FixedCopy> copies = superblocks();
  std::vector<StorePage> map(1);
  encode_map(map_, identity().uuid, map[0]);
  for (int copy = 0; copy < 2; ++copy)
    copies.push_back({fmt::format("copy {} of map {}", copy, map_place_),
                      layout_.map_offset(map_place_, copy), map});
  return copies;
}

std::optional<std::string> ExtentStore::fault_in(const FixedCopy& copy) const {
  std::vector<StorePage> there(copy.right.size());
  std::string fault = "it is not what was written";
  const auto is_right = try_decode(disk_, copy.offset, bytes_of(there), fault, [&] {
    return std::memcmp(there.data(), copy.right.data(), bytes_of(there).size()) == 0;
  });
  if (is_right.value_or(false)) return {};
  return fmt::format("{} of '{}', at byte {}, was cut while it was written, or is damaged: {}",
                     copy.name, name(), copy.offset, fault);
}

/** The generation that was committed last is left out where a checkpoint is the same one. */
std::vector<Pin> ExtentStore::kept() const {
  std::vector<Pin> kept = map_.pins;
  const bool is_pinned =
      std::ranges::any_of(kept, [&](const Pin& pin) { return pin.kept == map_.committed; });
  if (map_.committed.generation != 0 && !is_pinned) kept.push_back({"", map_.committed});
  return kept;
}

void ExtentStore::check_table(const Pin& kept, std::vector<StoreDamage>& damages) const {
  const KeptGeneration& of = kept.kept;
  const int64_t offset = layout_.table_offset(of.table);
  std::vector<StorePage> there(static_cast<size_t>(of.table_bytes / kStorePage_bytes));
  std::string fault = "its checksum is wrong";
  const auto is_right = try_decode(disk_, offset, bytes_of(there), fault,
                                   [&] { return crc32c(bytes_of(there)) == of.table_crc; });
  if (is_right.value_or(false)) return;
  damages.push_back({.generation = of.generation,
                     .checkpoint = kept.name,
                     .offset = offset,
                     .what = table_damage(of, fault)});
}

/** The same words when a store is opened and when it is checked. */
std::string ExtentStore::table_damage(const KeptGeneration& kept, std::string_view fault) const {
  return fmt::format("the table of generation {} in '{}', at byte {}, is damaged: {}",
                     kept.generation, name(), layout_.table_offset(kept.table), fault);
}

void ExtentStore::check_extents(std::span<const Pin> kept,
                                std::vector<StoreDamage>& damages) const {
  std::vector<const Generation*> generations;
  for (const Pin& pin : kept)
    generations.push_back(&table(pin.kept.table));
  const auto places = places_of(layout_, generations);
  const auto place = [&](int64_t i) { return places[static_cast<size_t>(i)]; };

  const auto window_pages = static_cast<size_t>(layout_.extent_bytes_max() / kStorePage_bytes);
  std::vector<StorePage> window(window_pages * kRequests_ahead);
  const auto bytes = [&](int64_t i) {
    const auto begin = static_cast<size_t>(i % kRequests_ahead) * window_pages;
    return std::as_writable_bytes(std::span(window).subspan(begin))
        .first(static_cast<size_t>(layout_.extent_bytes(place(i).segment, place(i).extent)));
  };

  int64_t n_read = 0;
  run_ahead(
      std::ssize(places),
      [&](int64_t i) {
        const auto [segment, extent, copy] = place(i);
        return disk_.read(layout_.offset_of(segment, extent, copy), bytes(i));
      },
      [&](DiskTicket ticket) {
        const int64_t i = n_read++;
        const auto [segment, extent, copy] = place(i);
        std::optional<uint32_t> crc;
        std::string fault = "is damaged: its checksum is wrong";
        try {
          disk_.wait(ticket);
          crc = crc32c(bytes(i));
        } catch (const Error& error) {
          fault = fmt::format("cannot be read: {}", error.what());
        }
        for (const Pin& pin : kept) {
          const Generation& generation = table(pin.kept.table);
          const auto index = static_cast<size_t>(layout_.index_of(segment, extent));
          if (generation.copies[index] != copy || crc == generation.crcs[index]) continue;
          damages.push_back(
              {.generation = generation.number,
               .checkpoint = pin.name,
               .block = layout_.segment(segment).block,
               .segment = layout_.segment(segment).name,
               .offset = layout_.offset_of(segment, extent, copy),
               .what = fmt::format("{}, {}", name_of(generation, segment, extent), fault)});
        }
      });
}

void ExtentStore::check_copies(std::span<const FixedCopy> copies,
                               std::vector<StoreDamage>& damages) const {
  for (const FixedCopy& copy : copies) {
    if (auto fault = fault_in(copy))
      damages.push_back({.offset = copy.offset, .what = std::move(*fault)});
  }
}

std::vector<StoreDamage> ExtentStore::check(std::string_view pin) const {
  std::lock_guard map_lock(map_mutex_);
  pinned(pin);  // there is one
  const Pin kept = *find_pin(pin);
  std::vector<StoreDamage> damages;
  check_copies(superblocks(), damages);
  check_table(kept, damages);
  check_extents({&kept, 1}, damages);
  return damages;
}

std::vector<StoreDamage> ExtentStore::check() const {
  std::lock_guard map_lock(map_mutex_);
  std::vector<StoreDamage> damages;
  check_copies(fixed_copies(), damages);
  const std::vector<Pin> all = kept();
  for (const Pin& pin : all)
    check_table(pin, damages);
  check_extents(all, damages);
  return damages;
}

}  // namespace ferry
