// Runs of bytes past the page cache: the file holds them wherever they begin and end, and the cache
// does not.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "src/files/write/direct_writer.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using test::TempDir;

constexpr int64_t kPage = DirectWriter::kPage_bytes;

/** Slots of memory that the disk takes from. */
struct Slots {
  explicit Slots(int64_t n)
      : memory(static_cast<std::byte*>(
                   std::aligned_alloc(kPage, static_cast<size_t>(n * WriteBehind::kSlot_bytes))),
               &std::free),
        behind({memory.get(), static_cast<size_t>(n * WriteBehind::kSlot_bytes)}) {}
  std::unique_ptr<std::byte, decltype(&std::free)> memory;
  WriteBehind behind;
};

/** The file's bytes from `offset` on, as `whole` has them. */
int fill(DirectWriter& writer, std::span<const std::byte> whole, int64_t offset, int64_t n_bytes) {
  return writer.fill(offset, n_bytes, [&](std::span<const std::span<std::byte>> parts) {
    for (const auto part : parts) {
      std::ranges::copy(whole.subspan(static_cast<size_t>(offset), part.size()), part.begin());
      offset += static_cast<int64_t>(part.size());
    }
  });
}

UniqueFd create(const std::filesystem::path& path, int64_t n_bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  EXPECT_TRUE(fd);
  EXPECT_EQ(::ftruncate(fd.get(), n_bytes), 0);
  return fd;
}

std::vector<std::byte> read_all(int fd, int64_t n_bytes) {
  std::vector<std::byte> bytes(static_cast<size_t>(n_bytes));
  EXPECT_EQ(::pread(fd, bytes.data(), bytes.size(), 0), n_bytes);
  return bytes;
}

TEST(DirectWriter, RunsOfAnyPlaceAndLengthInAnyOrder) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    const TempDir directory;
    const auto path = directory.path() / "file";
    // The file is cut at random into runs: short ones, ones of a few pages, longer than the buffer.
    std::vector<int64_t> cuts = {0};
    for (int i = 0; i < 30; ++i) {
      const int64_t longest[] = {10, 3 * kPage, 600'000, 3'000'000};
      const int64_t length =
          1 + static_cast<int64_t>(random() % static_cast<uint64_t>(longest[random() % 4]));
      cuts.push_back(random() % 5 == 0 ? (cuts.back() / kPage + 1 + length / kPage) * kPage
                                       : cuts.back() + length);
    }
    std::vector<std::byte> expected(static_cast<size_t>(cuts.back()));
    for (auto& byte : expected)
      byte = static_cast<std::byte>(random());
    const UniqueFd fd = create(path, cuts.back());
    // Room for one piece that is not handed over yet, and hardly more.
    Slots slots(WriteBehind::kPiece_slots + static_cast<int64_t>(seed));
    DirectWriter writer(path, fd.get(), slots.behind);
    std::vector<size_t> order(cuts.size() - 1);
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    if (seed % 2 == 0) std::ranges::shuffle(order, random);  // else: one run follows the other
    for (size_t run : order)
      for (int64_t at = cuts[run]; at < cuts[run + 1];) {
        const int64_t n = std::min<int64_t>(cuts[run + 1] - at, 1 + random() % 700'000);
        ASSERT_EQ(fill(writer, expected, at, n), 0);
        at += n;
      }
    ASSERT_EQ(writer.finish(), 0);
    ASSERT_TRUE(read_all(fd.get(), cuts.back()) == expected) << "seed " << seed;
  }
}

TEST(DirectWriter, LeavesThePageCacheAlone) {
  constexpr int64_t kBytes = 16 << 20;
  const TempDir directory;
  const auto path = directory.path() / "file";
  const UniqueFd fd = create(path, kBytes);
  Slots slots(20);
  DirectWriter writer(path, fd.get(), slots.behind);
  if (!writer.is_direct()) GTEST_SKIP() << "no O_DIRECT in " << directory.path();
  const std::vector<std::byte> bytes(kBytes, std::byte{7});
  ASSERT_EQ(fill(writer, bytes, 5, kBytes - 5), 0);
  ASSERT_EQ(writer.finish(), 0);
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::vector<unsigned char> resident(kBytes / kPage);
  ASSERT_EQ(::mincore(mapped, kBytes, resident.data()), 0);
  ::munmap(mapped, kBytes);
  EXPECT_LE(std::ranges::count_if(resident, [](unsigned char r) { return r & 1; }), 2);
}

TEST(DirectWriter, SaysWhatAFullDiskSays) {
  const test::FileSizeLimit limit(4 << 20);
  const TempDir directory;
  const auto path = directory.path() / "file";
  const UniqueFd fd = create(path, 4 << 20);
  Slots slots(20);
  DirectWriter writer(path, fd.get(), slots.behind);
  const std::vector<std::byte> bytes(64 << 20, std::byte{7});
  EXPECT_EQ(fill(writer, bytes, 0, 6 << 20), 0);  // taken, not yet written
  EXPECT_EQ(writer.finish(), EFBIG);
  // Who goes on is told, and is asked for nothing more.
  EXPECT_EQ(writer.fill(6 << 20, 1 << 20, [](auto) { ADD_FAILURE() << "filled"; }), EFBIG);
}

// Who takes the bytes of a checkpoint waits for room alone.
TEST(DirectWriter, NobodyWaitsForTheDiskWhileThereIsRoom) {
  std::atomic<bool> disk_moves = false;
  std::atomic<int> n_written = 0;
  Slots slots(4);  // last: what it writes asks them
  std::vector<std::byte*> taken;
  for (int i = 0; i < 4; ++i)
    taken.push_back(slots.behind.take());
  std::set<std::byte*> different(taken.begin(), taken.end());
  EXPECT_EQ(different.size(), 4);
  for (std::byte* slot : taken)
    slots.behind.submit({slot}, [&] {
      disk_moves.wait(false);
      ++n_written;
    });
  disk_moves = true;
  disk_moves.notify_all();
  EXPECT_TRUE(different.contains(slots.behind.take()));  // waits for one
  EXPECT_GE(n_written, 1);
}

TEST(DirectWriterDeathTest, ToTakeAllSlotsAndSubmitNoneIsOurBug) {
  EXPECT_DEATH(
      {
        Slots slots(1);
        slots.behind.take();
        slots.behind.take();
      },
      "all slots are taken");
}

// As a save that fails does: what is under way ends before the file goes.
TEST(DirectWriter, AFillThatThrowsLeavesNothingBehind) {
  const TempDir directory;
  const auto path = directory.path() / "file";
  const UniqueFd fd = create(path, 16 << 20);
  Slots slots(WriteBehind::kPiece_slots + 1);
  const std::vector<std::byte> bytes(16 << 20, std::byte{7});
  for (int i = 0; i < 3; ++i) {
    DirectWriter writer(path, fd.get(), slots.behind);
    ASSERT_EQ(fill(writer, bytes, 0, 5 << 20), 0);
    EXPECT_THROW(writer.fill(5 << 20, 3 << 20, [](auto) { throw std::runtime_error("no"); }),
                 std::runtime_error);
  }
  for (int i = 0; i <= static_cast<int>(WriteBehind::kPiece_slots); ++i)
    EXPECT_NE(slots.behind.take(), nullptr);  // all are free again
}

}  // namespace
}  // namespace ferry
