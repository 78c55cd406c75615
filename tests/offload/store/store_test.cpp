// The promises of a store while the drive works, and its words where it cannot go on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "offload/store/store.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "tests/files/no_memory.h"
#include "tests/files/test_files.h"
#include "tests/offload/store/store_cases.h"
#include "tests/offload/store/virtual_disk.h"

namespace ferry {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StoreTest : public ::testing::Test {
 protected:
  explicit StoreTest(int n_kept = 1)
      : layout_(small_segments(), n_kept),
        disk_(layout_.n_bytes(), 1),
        uuid_(ExtentStore::create(disk_, small_segments(), n_kept, "run-1")) {}

  const StoreLayout layout_;
  VirtualDisk disk_;
  const std::string uuid_;
};

TEST_F(StoreTest, BeginsWithoutAGeneration) {
  ExtentStore store(disk_, {"run-1", uuid_});
  EXPECT_EQ(store.committed().number, 0);
  EXPECT_THAT(store.pins(), IsEmpty());
  EXPECT_THAT(store.notes(), IsEmpty());
  EXPECT_THAT(store.check(), IsEmpty());
  EXPECT_EQ(store.identity().run, "run-1");
  EXPECT_EQ(store.identity().uuid.size(), 32u);
}

TEST_F(StoreTest, FindsWhatWasCommittedAndNothingElse) {
  {
    ExtentStore store(disk_, {});
    EXPECT_EQ(commit_numbered(store, 1), 1);
    EXPECT_EQ(commit_numbered(store, 2), 2);
    write_numbered(store, 0, 77);
    EXPECT_TRUE(is_numbered(store, store.newest(), 0, 77));
    EXPECT_TRUE(is_generation(store, store.committed(), 2));
  }
  ExtentStore store(disk_, {});
  EXPECT_EQ(store.committed().number, 2);
  EXPECT_TRUE(is_generation(store, store.committed(), 2));
  EXPECT_TRUE(is_numbered(store, store.newest(), 0, 2000)) << "what was not committed is gone";
  EXPECT_THAT(store.notes(), IsEmpty());
}

TEST_F(StoreTest, AStepWritesOnlyWhatChanged) {
  ExtentStore store(disk_, {});
  commit_numbered(store, 1);
  write_numbered(store, 2, 5);
  EXPECT_EQ(store.commit("5"), 2);
  EXPECT_TRUE(is_numbered(store, store.committed(), 2, 5));
  EXPECT_TRUE(is_numbered(store, store.committed(), 0, 1000));
}

TEST_F(StoreTest, ACheckpointMovesNoStates) {
  ExtentStore store(disk_, {});
  commit_numbered(store, 1);
  const int64_t before = disk_.n_written_bytes();
  store.pin("checkpoint-1");
  EXPECT_EQ(disk_.n_written_bytes() - before, 2 * kStorePage_bytes);
  for (uint64_t step = 2; step < 9; ++step) {
    commit_numbered(store, step);
    EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
  }
  EXPECT_THAT(store.pins(), ElementsAre("checkpoint-1"));
  store.start_from(store.pinned("checkpoint-1"));
  EXPECT_TRUE(is_numbered(store, store.newest(), 0, 1000));
  EXPECT_EQ(store.commit("1"), 9);
  EXPECT_TRUE(is_generation(store, store.committed(), 1));
  store.unpin("checkpoint-1");
  commit_numbered(store, 10);
  store.pin("checkpoint-10");
  EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-10"), 10));
}

TEST_F(StoreTest, BeginsAnewBesideWhatItKeeps) {
  ExtentStore store(disk_, {});
  commit_numbered(store, 1);
  store.pin("checkpoint-1");
  commit_numbered(store, 2);
  store.start_anew();
  for (const SegmentId segment : kLasting)
    EXPECT_FALSE(store.is_written(segment));
  EXPECT_TRUE(is_generation(store, store.committed(), 2));
  commit_numbered(store, 3);
  EXPECT_TRUE(is_generation(store, store.committed(), 3));
  EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
}

TEST_F(StoreTest, CommitWritesTheTableAndTheMapAlone) {
  ExtentStore store(disk_, {});
  commit_numbered(store, 1);
  const int64_t before = disk_.n_written_bytes();
  store.commit("2");
  EXPECT_EQ(disk_.n_written_bytes() - before, 3 * kStorePage_bytes);
}

/** Threads write while a checkpoint is deleted: its extents are free only when that is durable. */
TEST(StoreUnpin, FreesNothingBeforeItIsDurable) {
  int n_still_pinned = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    VirtualDisk disk(store_bytes(small_segments(), 1), seed);
    ExtentStore::create(disk, small_segments(), 1, "run");
    {
      ExtentStore store(disk, {});
      commit_numbered(store, 1);
      store.pin("checkpoint-1");
      commit_numbered(store, 2);
      disk.in_flush = [&] {
        for (const SegmentId segment : kLasting)
          write_numbered(store, segment, 3000);
        disk.end_life_in(0, VirtualDisk::End::power_cut);
      };
      EXPECT_THROW(store.unpin("checkpoint-1"), LifeEnded);
    }
    disk.start_again();
    const ExtentStore store(disk, {});
    EXPECT_TRUE(is_generation(store, store.committed(), 2));
    if (store.pins().empty()) continue;
    ++n_still_pinned;
    EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
  }
  EXPECT_GT(n_still_pinned, 0);
}

TEST_F(StoreTest, AFullStoreIsSaid) {
  ExtentStore store(disk_, {});
  commit_numbered(store, 1);
  store.pin("checkpoint-1");
  commit_numbered(store, 2);
  EXPECT_THAT(error_of([&] { store.pin("checkpoint-2"); }, Fault::does_not_fit),
              HasSubstr("'virtual' has room for 1 checkpoints and keeps checkpoint-1"));
  commit_numbered(store, 3);
  EXPECT_TRUE(is_generation(store, store.pinned("checkpoint-1"), 1));
  EXPECT_THAT(error_of([&] { store.pinned("checkpoint-2"); }, Fault::usage),
              HasSubstr("keeps no 'checkpoint-2'"));
  EXPECT_THAT(error_of([&] { store.unpin("checkpoint-2"); }, Fault::usage),
              HasSubstr("keeps no 'checkpoint-2'"));
}

TEST_F(StoreTest, VolatileSegmentsAreWrittenInPlaceAndForgotten) {
  {
    ExtentStore store(disk_, {});
    write_numbered(store, kVolatile, 1);
    commit_numbered(store, 1);
    EXPECT_TRUE(is_numbered(store, store.newest(), kVolatile, 1));
    write_numbered(store, kVolatile, 2);
    EXPECT_TRUE(is_numbered(store, store.newest(), kVolatile, 2));
  }
  ExtentStore store(disk_, {});
  EXPECT_EQ(store.newest().copies[static_cast<size_t>(layout_.index_of(kVolatile, 0))], kNoCopy);
}

/** Another drive, another run, no store, a store that is cut: not a byte is written. */
TEST_F(StoreTest, AnotherStoreIsRefusedBeforeAByteIsWritten) {
  const int64_t before = disk_.n_written_bytes();
  EXPECT_THAT(error_of([&] { ExtentStore(disk_, {.run = "run-2"}); }),
              HasSubstr("holds the states of the run 'run-1', not of 'run-2'"));
  EXPECT_THAT(error_of([&] { ExtentStore(disk_, {.uuid = std::string(32, '0')}); }),
              HasSubstr("holds the store " + uuid_ + ", not 0000"));
  EXPECT_EQ(disk_.n_written_bytes(), before);
  VirtualDisk empty(layout_.n_bytes(), 2), tiny(4096, 2);
  EXPECT_THAT(error_of([&] { ExtentStore(empty, {}); }), HasSubstr("holds no store of states"));
  EXPECT_THAT(error_of([&] { ExtentStore(tiny, {}); }), HasSubstr("it is too short"));
  EXPECT_EQ(empty.n_written_bytes(), 0);
  EXPECT_THAT(
      error_of([&] { ExtentStore::create(disk_, small_segments(), 1, "run-2"); }, Fault::usage),
      HasSubstr("holds the states of the run 'run-1'"));
  EXPECT_EQ(disk_.n_written_bytes(), before);
  EXPECT_THAT(error_of([&] { ExtentStore::create(empty, small_segments(), 2, "run"); },
                       Fault::does_not_fit),
              HasSubstr("with 2 checkpoints kept"));
  EXPECT_EQ(empty.n_written_bytes(), 0);
}

TEST_F(StoreTest, SegmentsThatCannotBeStoredAreRefused) {
  const auto refused = [&](StoredSegment segment, int n_kept = 0) {
    return error_of(
        [&] {
          ExtentStore::create(disk_, {segment, {9, "adam_v", 512}}, n_kept, "run-1");
        },
        Fault::usage);
  };
  EXPECT_THAT(refused({9, "adam_v", 512}), HasSubstr("block 9 has 'adam_v' twice"));
  EXPECT_THAT(refused({9, "a_name_of_sixteen", 512}), HasSubstr("17 characters"));
  EXPECT_THAT(refused({9, "", 512}), HasSubstr("0 characters"));
  EXPECT_THAT(refused({-1, "master", 512}), HasSubstr("below 0"));
  EXPECT_THAT(refused({9, "master", 0}), HasSubstr("0 bytes"));
  EXPECT_THAT(refused({9, "master", int64_t{1} << 60}), HasSubstr("bytes"));
  EXPECT_THAT(refused({9, "master", 512, 512}), HasSubstr("extents of 512 bytes"));
  EXPECT_THAT(refused({9, "master", int64_t{1} << 44, 4096}), HasSubstr("extents, at most"));
  EXPECT_THAT(refused({9, "master", 512}, 33), HasSubstr("33 checkpoints"));
}

TEST_F(StoreTest, ReadOnlyWritesNothing) {
  {
    ExtentStore store(disk_, {});
    commit_numbered(store, 1);
  }
  disk_.flip_bit(layout_.superblock_offset(0) + 100, 3);
  const int64_t before = disk_.n_written_bytes();
  const ExtentStore store(disk_, {}, ExtentStore::Access::read_only);
  EXPECT_TRUE(is_generation(store, store.committed(), 1));
  EXPECT_EQ(store.notes().size(), 1u);
  EXPECT_EQ(disk_.n_written_bytes(), before);
}

/** Every call in turn fails: nothing hangs, the store takes no more, and the states are there. */
TEST_F(StoreTest, AFailedWriteEndsWritingAndLosesNothing) {
  {
    ExtentStore store(disk_, {});
    commit_numbered(store, 1);
  }
  int64_t n_failures = 0;
  for (int64_t n = 0;; ++n) {
    uint64_t last = 0;
    {
      ExtentStore store(disk_, {});
      last = std::stoull(store.committed().metadata);
      disk_.fail_in(n);
      try {
        commit_numbered(store, last + 1);
        ++last;
        disk_.fail_in(-1);
        store.check();
        break;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("a planted EIO"));
        ++n_failures;
      }
      EXPECT_EQ(disk_.n_under_way(), 0);
      EXPECT_THAT(error_of([&] { commit_numbered(store, 9); }, Fault::machine),
                  HasSubstr("takes no more"));
      EXPECT_THAT(error_of([&] { store.pin("checkpoint-9"); }, Fault::machine),
                  HasSubstr("takes no more"));
    }
    ExtentStore store(disk_, {});
    const uint64_t found = std::stoull(store.committed().metadata);
    EXPECT_TRUE(found == last || found == last + 1) << found << " after " << last;
    EXPECT_TRUE(is_generation(store, store.committed(), found));
  }
  EXPECT_GT(n_failures, 10);
}

TEST_F(StoreTest, SpaceIsTheStatesTimesTwoAndThoseKept) {
  std::vector<StoredSegment> segments;
  for (int block = 0; block < 4; ++block) {
    for (const char* name : {"weights", "master", "adam_m", "adam_v"})
      segments.push_back({block, name, 100 * kMiB});
    segments.push_back(
        {.block = block, .name = "grads", .n_bytes = 50 * kMiB, .is_volatile = true});
  }
  for (const int n_kept : {0, 1, 3}) {
    const int64_t states = int64_t{1600} * kMiB * (2 + n_kept) + 200 * kMiB;
    EXPECT_GE(store_bytes(segments, n_kept), states);
    EXPECT_LE(store_bytes(segments, n_kept), states + states / 1000);
  }
}

/** No two things of a store share a byte, and the last one ends with it. */
TEST_F(StoreTest, NothingOverlaps) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  const auto add = [&](int64_t offset, int64_t n) { ranges.emplace_back(offset, offset + n); };
  for (int copy = 0; copy < 2; ++copy) {
    add(layout_.superblock_offset(copy), layout_.superblock_bytes());
    for (int map = 0; map < 2; ++map)
      add(layout_.map_offset(map, copy), kStorePage_bytes);
  }
  for (int table = 0; table < layout_.n_tables(); ++table)
    add(layout_.table_offset(table), layout_.table_bytes());
  for (SegmentId segment = 0; segment < layout_.n_segments(); ++segment) {
    const int n_copies = layout_.segment(segment).is_volatile ? 1 : layout_.n_copies();
    for (int64_t extent = 0; extent < layout_.n_extents(segment); ++extent) {
      for (int copy = 0; copy < n_copies; ++copy)
        add(layout_.offset_of(segment, extent, copy), layout_.extent_bytes(segment, extent));
    }
  }
  std::ranges::sort(ranges);
  EXPECT_EQ(ranges.front().first, 0);
  EXPECT_EQ(ranges.back().second, layout_.n_bytes());
  for (size_t i = 1; i < ranges.size(); ++i)
    EXPECT_EQ(ranges[i].first, ranges[i - 1].second);
}

/** Moves bytes at once, and allocates nothing. */
class MemoryDisk final : public Disk {
 public:
  explicit MemoryDisk(int64_t n_bytes) : bytes_(static_cast<size_t>(n_bytes)) {}
  int64_t n_bytes() const override { return std::ssize(bytes_); }
  int64_t alignment() const override { return kStorePage_bytes; }
  std::string name() const override { return "memory"; }
  DiskTicket read(int64_t offset, std::span<std::byte> to) override {
    std::copy_n(bytes_.begin() + offset, to.size(), to.begin());
    return 1;
  }
  DiskTicket write(int64_t offset, std::span<const std::byte> from) override {
    std::ranges::copy(from, bytes_.begin() + offset);
    return 1;
  }
  void wait(DiskTicket) override {}
  void flush() override {}

 private:
  std::vector<std::byte> bytes_;
};

TEST_F(StoreTest, ReadsAndWritesAllocateNothing) {
  MemoryDisk disk(layout_.n_bytes());
  ExtentStore::create(disk, small_segments(), 1, "run");
  ExtentStore store(disk, {});
  auto pages = pages_for(layout_, 0);
  {
    const NoMemory none;
    store.write_segment(0, bytes_of(pages));
    store.read_segment(store.newest(), 0, bytes_of(pages));
  }
  commit_numbered(store, 1);
  const NoMemory none;
  store.read_segment(store.committed(), 0, bytes_of(pages));
}

/** Creation cut in any call, on a new file or over an older store: there is the older one as it
 * was, or a new one without a generation, or none. */
TEST(StoreCreation, CutAtAnyMomentLeavesNoHalfOfAStore) {
  std::set<std::string> found;
  for (const bool is_over_another : {false, true}) {
    int64_t n_calls = 0;  // of a creation: the first is not cut
    for (uint64_t seed = 0; seed < 300; ++seed) {
      VirtualDisk disk(store_bytes(small_segments(), 1), seed);
      std::string older;
      if (is_over_another) {
        older = ExtentStore::create(disk, small_segments(), 1, "run");
        ExtentStore store(disk, {});
        commit_numbered(store, 1);
      }
      const int64_t n_before = disk.n_calls();
      if (n_calls == 0) {
        ExtentStore::create(disk, small_segments(), 1, "run");
        n_calls = disk.n_calls() - n_before;
      } else {
        disk.end_life_in(static_cast<int64_t>(seed) % n_calls, VirtualDisk::End::power_cut);
        EXPECT_THROW(ExtentStore::create(disk, small_segments(), 1, "run"), LifeEnded);
        disk.start_again();
      }
      try {
        const ExtentStore store(disk, {});
        const bool is_older = store.identity().uuid == older;
        found.insert(is_older ? "the older" : "a new one");
        if (is_older)
          EXPECT_TRUE(is_generation(store, store.committed(), 1));
        else
          EXPECT_EQ(store.committed().number, 0);
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("holds no store")) << seed;
        found.insert("none");
      }
    }
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAre("none", "a new one", "the older"));
}

/** Threads read and write while another one commits, as a pipeline's do. */
TEST_F(StoreTest, ThreadsShareIt) {
  ExtentStore store(disk_, {});
  commit_numbered(store, 1);
  for (uint64_t step = 2; step < 20; ++step) {
    std::vector<std::jthread> threads;
    for (const SegmentId segment : kLasting) {
      threads.emplace_back([&store, segment, step] {
        const uint64_t number = 1000 * step + 100 * static_cast<uint64_t>(segment);
        EXPECT_TRUE(is_numbered(store, store.newest(), segment, number - 1000));
        write_numbered(store, segment, number);
      });
    }
    threads.clear();
    threads.emplace_back([&] { store.commit(std::to_string(step)); });
    threads.emplace_back([&] { write_numbered(store, kVolatile, step); });
    threads.emplace_back([&] { EXPECT_TRUE(is_numbered(store, store.newest(), 0, 1000 * step)); });
    threads.clear();
    EXPECT_TRUE(is_generation(store, store.committed(), step));
  }
}

}  // namespace
}  // namespace ferry
