#include "offload/store/store_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <type_traits>

#include "src/base/crc32c.h"
#include "src/base/error.h"

namespace ferry {
namespace {

constexpr uint32_t kVersion = 1;

// Little-endian, as every machine is that Ferry runs on. A page or area ends with its checksum.

struct SuperblockHead {
  char magic[8] = {'F', 'E', 'R', 'R', 'Y', 'S', 'T', 'O'};
  uint32_t version = kVersion;
  int32_t n_kept = 0;
  int64_t n_segments = 0;
  char uuid[kUuid_length] = {};
  char run[kRunName_max + 1] = {};
};
struct SegmentRecord {
  int32_t block = 0;
  uint32_t is_volatile = 0;
  char name[kSegmentName_max + 1] = {};
  int64_t n_bytes = 0;
  int64_t extent_bytes = 0;
};
static_assert(sizeof(SuperblockHead) + kSegments_max * sizeof(SegmentRecord) + sizeof(uint32_t) <=
              StoreLayout::superblock_bytes());

/** Far more than the drives of any machine. */
constexpr uint32_t kStripeNumber_max = 4096;
struct MarkRecord {
  char magic[8] = {'F', 'E', 'R', 'R', 'Y', 'S', 'T', 'R'};
  uint32_t version = kVersion;
  uint32_t number = 0;
  char uuid[kUuid_length] = {};
  char run[kRunName_max + 1] = {};
};

struct KeptRecord {
  int64_t generation = 0;
  int64_t table_bytes = 0;
  uint32_t table = 0;
  uint32_t table_crc = 0;
  char name[kCheckpointName_max + 1] = {};
};
struct MapRecord {
  char magic[8] = {'F', 'E', 'R', 'R', 'Y', 'M', 'A', 'P'};
  char uuid[kUuid_length] = {};
  int64_t sequence = 0;
  int64_t n_pins = 0;
  KeptRecord committed;
  KeptRecord pins[kKept_max];
};
static_assert(sizeof(MapRecord) + sizeof(uint32_t) <= kStorePage_bytes);

struct TableHead {
  char magic[8] = {'F', 'E', 'R', 'R', 'Y', 'T', 'A', 'B'};
  int64_t generation = 0;
  int64_t n_extents = 0;
  int64_t metadata_bytes = 0;
};
static_assert(sizeof(TableHead) == StoreLayout::kTableHead_bytes);

/** Takes records out of bytes, in order, and never more than there are. */
class Taker {
 public:
  explicit Taker(std::span<const std::byte> bytes) : left_(bytes) {}

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T record;
    std::memcpy(&record, take_bytes(sizeof record).data(), sizeof record);
    return record;
  }
  std::span<const std::byte> take_bytes(size_t n) {
    if (n > left_.size()) throw StoreFormatError("it is cut short");
    const auto taken = left_.first(n);
    left_ = left_.subspan(n);
    return taken;
  }

 private:
  std::span<const std::byte> left_;
};

/** Puts records end to end. */
class Putter {
 public:
  explicit Putter(std::span<std::byte> bytes) : left_(bytes) {}

  template <typename T>
  void put(const T& record) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(std::as_bytes(std::span(&record, 1)));
  }
  void put_bytes(std::span<const std::byte> bytes) {
    FERRY_CHECK(bytes.size() <= left_.size(), "{} bytes, room for {}", bytes.size(), left_.size());
    std::ranges::copy(bytes, left_.begin());
    left_ = left_.subspan(bytes.size());
  }
  void zero_the_rest() {
    std::ranges::fill(left_, std::byte{0});
    left_ = {};
  }

 private:
  std::span<std::byte> left_;
};

template <size_t n>
void put_text(std::string_view text, char (&field)[n]) {
  FERRY_CHECK(text.size() <= n, "'{}' has more than {} characters", text, n);
  std::ranges::copy(text, field);
}

template <size_t n>
std::string text_of(const char (&field)[n]) {
  return {field, std::find(field, field + n, '\0')};
}

template <typename Record>
void check_magic(const Record& record) {
  const Record right;
  if (std::memcmp(record.magic, right.magic, sizeof right.magic) != 0)
    throw StoreFormatError("it does not begin as one of Ferry's does");
}

/** The checksum covers all bytes before it, the last four. */
void seal(std::span<std::byte> area) {
  const auto content = area.first(area.size() - sizeof(uint32_t));
  const uint32_t crc = crc32c(content);
  std::memcpy(area.data() + content.size(), &crc, sizeof crc);
}

void check_seal(std::span<const std::byte> area) {
  const auto content = area.first(area.size() - sizeof(uint32_t));
  uint32_t crc = 0;
  std::memcpy(&crc, area.data() + content.size(), sizeof crc);
  if (crc != crc32c(content)) throw StoreFormatError("its checksum is wrong");
}

KeptRecord record_of(const KeptGeneration& kept, std::string_view name = {}) {
  KeptRecord record{.generation = kept.generation,
                    .table_bytes = kept.table_bytes,
                    .table = static_cast<uint32_t>(kept.table),
                    .table_crc = kept.table_crc};
  put_text(name, record.name);
  return record;
}

KeptGeneration kept_of(const KeptRecord& record, const StoreLayout& layout) {
  if (record.generation < 1)
    throw StoreFormatError(fmt::format("it has a generation {}", record.generation));
  if (record.table >= static_cast<uint32_t>(layout.n_tables()))
    throw StoreFormatError(fmt::format("it has a table {} of {}", record.table, layout.n_tables()));
  if (record.table_bytes <= 0 || record.table_bytes > layout.table_bytes() ||
      record.table_bytes % kStorePage_bytes != 0)
    throw StoreFormatError(fmt::format("it has a table of {} bytes", record.table_bytes));
  return {record.generation, static_cast<int>(record.table), record.table_bytes, record.table_crc};
}

/** Generations may share a table only where they are one. */
void check_tables(const StoreMap& map) {
  std::map<int, KeptGeneration> by_table;
  if (map.committed.generation != 0) by_table[map.committed.table] = map.committed;
  for (const Pin& pin : map.pins) {
    if (by_table.try_emplace(pin.kept.table, pin.kept).first->second != pin.kept)
      throw StoreFormatError(fmt::format("it has table {} twice", pin.kept.table));
  }
}

}  // namespace

void encode_superblock(const Superblock& superblock, std::span<std::byte> area) {
  FERRY_CHECK(std::ssize(area) == StoreLayout::superblock_bytes(), "{} bytes", area.size());
  Putter putter(area);
  SuperblockHead head{.n_kept = superblock.n_kept, .n_segments = std::ssize(superblock.segments)};
  put_text(superblock.identity.uuid, head.uuid);
  put_text(superblock.identity.run, head.run);
  putter.put(head);
  for (const StoredSegment& segment : superblock.segments) {
    SegmentRecord record{.block = segment.block,
                         .is_volatile = segment.is_volatile,
                         .n_bytes = segment.n_bytes,
                         .extent_bytes = segment.extent_bytes};
    put_text(segment.name, record.name);
    putter.put(record);
  }
  putter.zero_the_rest();
  seal(area);
}

Superblock decode_superblock(std::span<const std::byte> area) {
  if (std::ssize(area) != StoreLayout::superblock_bytes())
    throw StoreFormatError("it is cut short");
  Taker taker(area);
  const auto head = taker.take<SuperblockHead>();
  check_magic(head);
  check_seal(area);
  if (head.version != kVersion)
    throw StoreFormatError(
        fmt::format("it was written as version {} by another Ferry, and this one knows version {}",
                    head.version, kVersion));
  if (head.n_segments < 0 || head.n_segments > kSegments_max)
    throw StoreFormatError(fmt::format("it has {} segments", head.n_segments));
  Superblock superblock{.identity = {text_of(head.run), text_of(head.uuid)}, .n_kept = head.n_kept};
  for (int64_t i = 0; i < head.n_segments; ++i) {
    const auto record = taker.take<SegmentRecord>();
    superblock.segments.push_back({record.block, text_of(record.name), record.n_bytes,
                                   record.extent_bytes, record.is_volatile != 0});
  }
  if (const auto fault = StoreLayout::fault_in(superblock.segments, superblock.n_kept))
    throw StoreFormatError(*fault);
  return superblock;
}

void encode_mark(const StripeIdentity& identity, StorePage& page) {
  FERRY_CHECK(identity.number > 0 && identity.number <= kStripeNumber_max, "file {}",
              identity.number);
  MarkRecord record{.number = static_cast<uint32_t>(identity.number)};
  put_text(identity.store.uuid, record.uuid);
  put_text(identity.store.run, record.run);
  Putter putter(page.bytes);
  putter.put(record);
  putter.zero_the_rest();
  seal(page.bytes);
}

StripeIdentity decode_mark(const StorePage& page) {
  const auto record = Taker(page.bytes).take<MarkRecord>();
  check_magic(record);
  check_seal(page.bytes);
  if (record.version != kVersion)
    throw StoreFormatError(fmt::format("it was written as version {}", record.version));
  if (record.number == 0 || record.number > kStripeNumber_max)
    throw StoreFormatError(fmt::format("it is of a file {}", record.number));
  return {.store = {text_of(record.run), text_of(record.uuid)}, .number = record.number};
}

void encode_map(const StoreMap& map, std::string_view uuid, StorePage& page) {
  FERRY_CHECK(map.pins.size() <= kKept_max, "{} pins", map.pins.size());
  MapRecord record{.sequence = map.sequence,
                   .n_pins = std::ssize(map.pins),
                   .committed = record_of(map.committed)};
  put_text(uuid, record.uuid);
  for (size_t i = 0; i < map.pins.size(); ++i)
    record.pins[i] = record_of(map.pins[i].kept, map.pins[i].name);
  Putter putter(page.bytes);
  putter.put(record);
  putter.zero_the_rest();
  seal(page.bytes);
}

StoreMap decode_map(const StorePage& page, std::string_view uuid, const StoreLayout& layout) {
  const auto record = Taker(page.bytes).take<MapRecord>();
  check_magic(record);
  check_seal(page.bytes);
  if (text_of(record.uuid) != uuid) throw StoreFormatError("it is of another store");
  if (record.sequence < 1)
    throw StoreFormatError(fmt::format("it has the sequence {}", record.sequence));
  if (record.n_pins < 0 || record.n_pins > layout.n_kept())
    throw StoreFormatError(fmt::format("it keeps {} checkpoints", record.n_pins));
  StoreMap map{.sequence = record.sequence};
  if (record.committed.generation != 0) map.committed = kept_of(record.committed, layout);
  std::set<std::string> names;
  for (int64_t i = 0; i < record.n_pins; ++i) {
    const KeptRecord& pin = record.pins[i];
    map.pins.push_back({text_of(pin.name), kept_of(pin, layout)});
    if (!names.insert(map.pins.back().name).second)
      throw StoreFormatError(fmt::format("it keeps '{}' twice", map.pins.back().name));
  }
  check_tables(map);
  return map;
}

int64_t encode_table(const Generation& generation,
                     const StoreLayout& layout,
                     std::span<std::byte> area) {
  const auto n = static_cast<size_t>(layout.n_lasting_extents());
  const auto crcs = std::as_bytes(std::span(generation.crcs).first(n));
  const auto copies = std::as_bytes(std::span(generation.copies).first(n));
  const auto metadata = std::as_bytes(std::span(generation.metadata));
  const auto n_bytes = static_cast<size_t>(round_up(
      static_cast<int64_t>(sizeof(TableHead) + crcs.size() + copies.size() + metadata.size()),
      kStorePage_bytes));
  FERRY_CHECK(n_bytes <= area.size(), "a table of {} bytes, room for {}", n_bytes, area.size());
  Putter putter(area.first(n_bytes));
  putter.put(TableHead{.generation = generation.number,
                       .n_extents = layout.n_lasting_extents(),
                       .metadata_bytes = std::ssize(metadata)});
  putter.put_bytes(crcs);
  putter.put_bytes(copies);
  putter.put_bytes(metadata);
  putter.zero_the_rest();
  return static_cast<int64_t>(n_bytes);
}

void decode_table(std::span<const std::byte> table,
                  const KeptGeneration& kept,
                  const StoreLayout& layout,
                  Generation& generation) {
  if (crc32c(table) != kept.table_crc) throw StoreFormatError("its checksum is wrong");
  Taker taker(table);
  const auto head = taker.take<TableHead>();
  check_magic(head);
  if (head.generation != kept.generation)
    throw StoreFormatError(fmt::format("it is of generation {}", head.generation));
  if (head.n_extents != layout.n_lasting_extents())
    throw StoreFormatError(fmt::format("it has {} extents in place of {}", head.n_extents,
                                       layout.n_lasting_extents()));
  if (head.metadata_bytes < 0 || head.metadata_bytes > kMetadata_bytes_max)
    throw StoreFormatError(fmt::format("it has {} bytes of metadata", head.metadata_bytes));
  const auto n = static_cast<size_t>(head.n_extents);
  const auto crcs = taker.take_bytes(n * sizeof(uint32_t));
  const auto copies = taker.take_bytes(n);
  const auto metadata = taker.take_bytes(static_cast<size_t>(head.metadata_bytes));
  for (const std::byte copy : copies) {
    if (std::to_integer<int>(copy) >= layout.n_copies())
      throw StoreFormatError(fmt::format("it has an extent in copy {} of {}",
                                         std::to_integer<int>(copy), layout.n_copies()));
  }
  generation.number = head.generation;
  generation.metadata.assign(reinterpret_cast<const char*>(metadata.data()), metadata.size());
  std::ranges::copy(crcs, std::as_writable_bytes(std::span(generation.crcs)).begin());
  std::ranges::copy(copies, std::as_writable_bytes(std::span(generation.copies)).begin());
}

}  // namespace ferry
