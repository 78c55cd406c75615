// Flipped bits anywhere in a store: found, named, and never handed on. And damage that has a right
// checksum, as of a reader of the map who is lied to.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "offload/store/store.h"
#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "tests/files/test_files.h"
#include "tests/offload/store/store_cases.h"
#include "tests/offload/store/virtual_disk.h"

namespace ferry {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/** Generation 1 is kept as a checkpoint, 3 was committed last. */
class DamageTest : public ::testing::Test {
 protected:
  DamageTest() {
    ExtentStore::create(disk_, small_segments(), 1, "run");
    ExtentStore store(disk_, {});
    commit_numbered(store, 1);
    store.pin("checkpoint-1");
    commit_numbered(store, 2);
    commit_numbered(store, 3);
  }

  const StoreLayout layout_{small_segments(), 1};
  VirtualDisk disk_{layout_.n_bytes(), 1};
  std::mt19937_64 dice_{7};
};

/** One bit of each extent that is kept, in turn; check() names all of them and nothing else. */
TEST_F(DamageTest, ABitOfAnExtentIsFoundAndNamed) {
  ExtentStore store(disk_, {});
  int n_flipped = 0;
  for (const bool is_last : {true, false}) {
    const Generation& hit = is_last ? store.committed() : store.pinned("checkpoint-1");
    for (const SegmentId segment : kLasting) {
      for (int64_t extent = 0; extent < layout_.n_extents(segment); ++extent) {
        const int copy = hit.copies[static_cast<size_t>(layout_.index_of(segment, extent))];
        const int64_t begin = layout_.offset_of(segment, extent, copy);
        const auto n_bytes = static_cast<uint64_t>(layout_.extent_bytes(segment, extent));
        const int64_t at = begin + static_cast<int64_t>(dice_() % n_bytes);
        const int bit = static_cast<int>(dice_() % 8);
        disk_.flip_bit(at, bit);
        ++n_flipped;

        const StoredSegment& stored = layout_.segment(segment);
        const auto named =
            fmt::format("extent {} of block {}'s {} in generation {} of 'virtual', at byte {}",
                        extent, stored.block, stored.name, is_last ? 3 : 1, begin);
        const auto named_pinned =
            fmt::format("in generation 1 (checkpoint-1) of 'virtual', at byte {}", begin);
        const auto is_named = HasSubstr(is_last ? named : named_pinned);
        const auto damages = store.check();
        ASSERT_THAT(damages, SizeIs(1));
        EXPECT_THAT(damages[0].what, is_named);
        EXPECT_EQ(damages[0].generation, is_last ? 3 : 1);
        EXPECT_EQ(damages[0].checkpoint, is_last ? "" : "checkpoint-1");
        EXPECT_EQ(damages[0].block, stored.block);
        EXPECT_EQ(damages[0].segment, stored.name);

        auto pages = pages_for(layout_, segment);
        EXPECT_THAT(error_of([&] { store.read_segment(hit, segment, bytes_of(pages)); }), is_named);
        EXPECT_EQ(disk_.n_under_way(), 0);
        EXPECT_TRUE(is_generation(store, is_last ? store.pinned("checkpoint-1") : store.committed(),
                                  is_last ? 1 : 3));
        if (is_last) {  // the next generation stands on it
          EXPECT_THAT(
              error_of([&] { store.read_segment(store.newest(), segment, bytes_of(pages)); }),
              is_named);
        }
        disk_.flip_bit(at, bit);
      }
    }
  }
  EXPECT_EQ(n_flipped, 2 * 5);
  EXPECT_THAT(store.check(), IsEmpty());
}

/** Others may be damaged, and another process may go on. */
TEST_F(DamageTest, ACheckpointIsCheckedByItself) {
  const ExtentStore store(disk_, {}, ExtentStore::Access::read_only);
  const auto flip = [&](const Generation& generation) {
    disk_.flip_bit(layout_.offset_of(0, 1, generation.copies[1]) + 9, 3);
  };
  flip(store.committed());
  EXPECT_THAT(store.check("checkpoint-1"), IsEmpty());
  {
    ExtentStore run(disk_, {});
    write_numbered(run, 0, 4000);
    run.commit("4");
    run.commit("5");
  }
  EXPECT_THAT(store.check("checkpoint-1"), IsEmpty());
  flip(store.pinned("checkpoint-1"));
  disk_.flip_bit(layout_.superblock_offset(1) + 100, 1);
  const auto damages = store.check("checkpoint-1");
  ASSERT_THAT(damages, SizeIs(2));
  EXPECT_THAT(damages[0].what, HasSubstr("copy 1 of the superblock"));
  EXPECT_THAT(damages[1].what,
              HasSubstr("extent 1 of block 0's adam_m in generation 1 (checkpoint-1)"));
  EXPECT_THAT(error_of([&] { store.check("checkpoint-2"); }, Fault::usage), HasSubstr("keeps no"));
}

TEST_F(DamageTest, ABitOfATableSpoilsItsGenerationAlone) {
  for (const bool is_last : {true, false}) {
    for (int64_t bit = 0; bit < 8 * 64; bit += 5) {  // head, checksums, copies, metadata
      // The first table that no kept generation had: 1 took table 0, 2 table 1, 3 table 2.
      const int64_t at = layout_.table_offset(is_last ? 2 : 0) + bit / 8;
      disk_.flip_bit(at, static_cast<int>(bit % 8));
      ExtentStore store(disk_, {});
      const int64_t number = is_last ? 3 : 1;
      const auto is_named =
          HasSubstr(fmt::format("the table of generation {} in 'virtual', at byte {}", number,
                                layout_.table_offset(is_last ? 2 : 0)));
      EXPECT_THAT(store.notes(), ElementsAre(is_named));
      const auto damages = store.check();
      ASSERT_THAT(damages, SizeIs(1));
      EXPECT_THAT(damages[0].what, is_named);
      EXPECT_EQ(damages[0].generation, number);
      auto pages = pages_for(layout_, 0);
      const Generation& spoilt = is_last ? store.committed() : store.pinned("checkpoint-1");
      const Generation& whole = is_last ? store.pinned("checkpoint-1") : store.committed();
      EXPECT_THAT(error_of([&] { store.read_segment(spoilt, 0, bytes_of(pages)); }), is_named);
      EXPECT_THAT(error_of([&] { store.start_from(spoilt); }), is_named);
      EXPECT_TRUE(is_generation(store, whole, is_last ? 1 : 3));
      if (is_last) {
        EXPECT_THAT(error_of([&] { store.read_segment(store.newest(), 0, bytes_of(pages)); }),
                    is_named);
        EXPECT_THAT(error_of([&] { store.commit(""); }), is_named);
      }
      disk_.flip_bit(at, static_cast<int>(bit % 8));
    }
  }
}

/** The run goes on from a checkpoint, and nothing of that is touched. */
TEST_F(DamageTest, ARunGoesOnFromACheckpointWhenTheLastTableIsSpoilt) {
  disk_.flip_bit(layout_.table_offset(2), 0);
  {
    ExtentStore store(disk_, {});
    store.start_from(store.pinned("checkpoint-1"));
    EXPECT_EQ(store.commit("1"), 4);
    EXPECT_TRUE(is_generation(store, store.committed(), 1));
    commit_numbered(store, 5);
    EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
  }
  const ExtentStore store(disk_, {});
  EXPECT_TRUE(is_generation(store, store.committed(), 5));
  EXPECT_THAT(store.check(), IsEmpty());
}

/** Superblock and map lie there twice: one flipped bit is found by check(), told and mended when
 * the store is opened. */
TEST_F(DamageTest, ABitOfASuperblockOrMapIsFoundAndMended) {
  struct Place {
    std::string name;
    int64_t offset, n_bytes;
  };
  std::vector<Place> places;
  for (int copy = 0; copy < 2; ++copy) {
    places.push_back({fmt::format("copy {} of the superblock", copy),
                      layout_.superblock_offset(copy), StoreLayout::superblock_bytes()});
    // The last of four changes after the two maps that it is made with.
    places.push_back(
        {fmt::format("copy {} of map 1", copy), layout_.map_offset(1, copy), kStorePage_bytes});
  }
  for (const Place& place : places) {
    for (int i = 0; i < 100; ++i) {
      const int64_t within = i < 50 ? static_cast<int64_t>(dice_() % 400)
                                    : static_cast<int64_t>(dice_()) & (place.n_bytes - 1);
      ExtentStore before(disk_, {});
      ASSERT_THAT(before.notes(), IsEmpty());
      disk_.flip_bit(place.offset + within, static_cast<int>(dice_() % 8));
      const auto is_named =
          HasSubstr(fmt::format("{} of 'virtual', at byte {}", place.name, place.offset));
      const auto damages = before.check();
      ASSERT_THAT(damages, SizeIs(1)) << place.name << " " << within;
      EXPECT_THAT(damages[0].what, is_named);
      EXPECT_EQ(damages[0].generation, 0);
      ExtentStore store(disk_, {});
      EXPECT_THAT(store.notes(), ElementsAre(is_named));
      EXPECT_TRUE(is_generation(store, store.committed(), 3));
      EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
      EXPECT_THAT(store.check(), IsEmpty());
    }
  }
}

/** Both copies of the newest map: the one before it is taken and that is said. Its generation is
 * there, or its extents are found to be others. */
TEST_F(DamageTest, BothCopiesOfTheNewestMapLeaveTheOneBefore) {
  for (int copy = 0; copy < 2; ++copy)
    disk_.flip_bit(layout_.map_offset(1, copy) + 60, 1);
  const ExtentStore store(disk_, {});
  EXPECT_THAT(store.notes(), ElementsAre(HasSubstr("map 1 of 'virtual'")));
  EXPECT_EQ(store.committed().number, 2);
  EXPECT_TRUE(is_generation(store, store.committed(), 2));
  EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
}

TEST_F(DamageTest, ALostMapIsNotTrainedOnWhenTheNextStepHadBegun) {
  {
    ExtentStore store(disk_, {});
    write_numbered(store, 0, 4000);
  }
  for (int copy = 0; copy < 2; ++copy)
    disk_.flip_bit(layout_.map_offset(1, copy) + 60, 1);
  const ExtentStore store(disk_, {});
  EXPECT_EQ(store.committed().number, 2);
  EXPECT_EQ(store.check().size(), static_cast<size_t>(layout_.n_extents(0)));
  auto pages = pages_for(layout_, 0);
  EXPECT_THAT(error_of([&] { store.read_segment(store.newest(), 0, bytes_of(pages)); }),
              HasSubstr("of block 0's adam_m in generation 2 of 'virtual'"));
  EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
}

TEST_F(DamageTest, NoWholeMapIsAnError) {
  for (int map = 0; map < 2; ++map) {
    for (int copy = 0; copy < 2; ++copy)
      disk_.flip_bit(layout_.map_offset(map, copy) + 60, 1);
  }
  EXPECT_THAT(error_of([&] { ExtentStore(disk_, {}); }),
              HasSubstr("'virtual' has no whole map: its checksum is wrong"));
}

// --- Made-up bytes -------------------------------------------------------------------------------

/** Writes a right checksum under bytes that were changed, as no drive does. */
void seal(std::span<std::byte> area) {
  const uint32_t crc = crc32c(area.first(area.size() - 4));
  std::memcpy(area.data() + area.size() - 4, &crc, 4);
}

/** Numbers where they hurt. */
void mutate(std::span<std::byte> bytes, std::mt19937_64& dice) {
  static constexpr int64_t kNumbers[] = {0,
                                         1,
                                         2,
                                         31,
                                         33,
                                         255,
                                         4095,
                                         4096,
                                         -1,
                                         INT64_MAX,
                                         INT64_MIN,
                                         INT64_MAX - 4095,
                                         int64_t{1} << 32,
                                         int64_t{1} << 44};
  for (uint64_t n = 1 + dice() % 3; n > 0; --n) {
    const size_t at = dice() % (bytes.size() - 8);
    if (dice() % 2 == 0) {
      bytes[at] = static_cast<std::byte>(dice());
    } else {
      const int64_t number = kNumbers[dice() % std::size(kNumbers)];
      std::memcpy(bytes.data() + at / 4 * 4, &number, dice() % 2 == 0 ? 8 : 4);
    }
  }
}

/** Decodes changed copies of bytes: each is refused, or keeps within the layout. */
template <typename Decode>
void feed(std::span<const std::byte> right, size_t n_used, Decode decode) {
  std::mt19937_64 dice(11);
  int n_taken = 0, n_refused = 0;
  std::vector<StorePage> pages(right.size() / sizeof(StorePage));
  for (int i = 0; i < 4000; ++i) {
    std::ranges::copy(right, bytes_of(pages).begin());
    mutate(bytes_of(pages).first(n_used), dice);
    try {
      decode(pages);
      ++n_taken;
    } catch (const StoreFormatError&) {
      ++n_refused;
    }
  }
  EXPECT_GT(n_refused, 100);
  EXPECT_GT(n_taken, 10);
}

TEST(StoreFormatTest, MadeUpSuperblocksAreRefusedOrMakeSense) {
  std::vector<StorePage> right(StoreLayout::superblock_bytes() / kStorePage_bytes);
  const Superblock superblock{{"run", std::string(32, 'a')}, 2, small_segments()};
  encode_superblock(superblock, bytes_of(right));
  const auto decoded = decode_superblock(bytes_of(right));
  EXPECT_EQ(decoded.identity.run, "run");
  EXPECT_EQ(decoded.segments.size(), 4u);
  feed(bytes_of(right), 640, [](std::vector<StorePage>& pages) {
    seal(bytes_of(pages));
    const auto found = decode_superblock(bytes_of(pages));
    const StoreLayout layout(found.segments, found.n_kept);
    EXPECT_GT(layout.n_bytes(), 0);
    EXPECT_LE(layout.n_extents(), 1 << 24);
  });
  const auto bytes = bytes_of(right);
  for (const size_t n : {size_t{0}, size_t{100}, bytes.size() - 1})
    EXPECT_THROW(decode_superblock(bytes.first(n)), StoreFormatError);
}

TEST(StoreFormatTest, MadeUpMapsAreRefusedOrMakeSense) {
  const StoreLayout layout(small_segments(), 3);
  const std::string uuid(32, 'a');
  std::vector<StorePage> right(1);
  encode_map({.sequence = 9,
              .committed = {8, 0, 4096, 1},
              .pins = {{"a", {3, 1, 8192, 2}}, {"b", {8, 0, 4096, 1}}, {"c", {5, 3, 4096, 7}}}},
             uuid, right[0]);
  const StoreMap map = decode_map(right[0], uuid, layout);
  EXPECT_EQ(map.pins.size(), 3u);
  EXPECT_THROW(decode_map(right[0], std::string(32, 'b'), layout), StoreFormatError);
  auto shared = right;
  encode_map({.sequence = 9, .committed = {8, 0, 4096, 1}, .pins = {{"a", {3, 0, 4096, 2}}}}, uuid,
             shared[0]);
  EXPECT_THROW(decode_map(shared[0], uuid, layout), StoreFormatError) << "two in one table";
  feed(bytes_of(right), 56 + 4 * 88, [&](std::vector<StorePage>& pages) {
    seal(bytes_of(pages));
    const StoreMap found = decode_map(pages[0], uuid, layout);
    EXPECT_LE(found.pins.size(), 3u);
    std::set<std::string> names;
    for (const Pin& pin : found.pins) {
      EXPECT_TRUE(pin.kept.table >= 0 && pin.kept.table < layout.n_tables());
      EXPECT_TRUE(pin.kept.table_bytes > 0 && pin.kept.table_bytes <= layout.table_bytes());
      EXPECT_TRUE(names.insert(pin.name).second);
    }
  });
}

TEST(StoreFormatTest, MadeUpTablesAreRefusedOrMakeSense) {
  const StoreLayout layout(small_segments(), 0);
  const auto n = static_cast<size_t>(layout.n_extents());
  const Generation generation{5, "metadata", std::vector<uint8_t>(n, 1),
                              std::vector<uint32_t>(n, 9), ""};
  std::vector<StorePage> right(static_cast<size_t>(layout.table_bytes() / kStorePage_bytes));
  right.resize(
      static_cast<size_t>(encode_table(generation, layout, bytes_of(right)) / kStorePage_bytes));
  const auto decode = [&](std::span<const std::byte> bytes) {
    Generation found{.copies = std::vector<uint8_t>(n, kNoCopy), .crcs = std::vector<uint32_t>(n)};
    decode_table(bytes, {5, 0, std::ssize(bytes), crc32c(bytes)}, layout, found);
    return found;
  };
  EXPECT_EQ(decode(bytes_of(right)).metadata, "metadata");
  feed(bytes_of(right), 80, [&](std::vector<StorePage>& pages) {
    const Generation found = decode(bytes_of(pages));
    EXPECT_EQ(found.number, 5);
    for (const uint8_t copy : found.copies)
      EXPECT_TRUE(copy < layout.n_copies() || copy == kNoCopy);
  });
  EXPECT_THROW(decode(bytes_of(right).first(40)), StoreFormatError);
}

}  // namespace
}  // namespace ferry
