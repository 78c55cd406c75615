// Runs of bytes past the page cache: the file holds them wherever they begin and end, and the cache
// does not.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "src/files/direct_writer.h"
#include "tests/files/test_files.h"

namespace ferry {
namespace {

using testing::TempDir;

constexpr int64_t kPage = DirectWriter::kPage_bytes;

struct Buffer {
  explicit Buffer(int64_t n_bytes)
      : memory(static_cast<std::byte*>(std::aligned_alloc(kPage, static_cast<size_t>(n_bytes))),
               &std::free),
        bytes(memory.get(), static_cast<size_t>(n_bytes)) {}
  std::unique_ptr<std::byte, decltype(&std::free)> memory;
  std::span<std::byte> bytes;
};

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
    Buffer shared(512 << 10);
    DirectWriter writer(path, fd.get(), shared.bytes);
    std::vector<size_t> order(cuts.size() - 1);
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = i;
    std::ranges::shuffle(order, random);
    for (size_t run : order) {
      for (int64_t at = cuts[run]; at < cuts[run + 1];) {
        const int64_t n = std::min<int64_t>(cuts[run + 1] - at, 1 + random() % 700'000);
        ASSERT_EQ(writer.write(at, std::span(expected).subspan(static_cast<size_t>(at),
                                                               static_cast<size_t>(n))),
                  0);
        at += n;
      }
      ASSERT_EQ(writer.end_run(), 0);
    }
    ASSERT_TRUE(read_all(fd.get(), cuts.back()) == expected) << "seed " << seed;
  }
}

TEST(DirectWriter, LeavesThePageCacheAlone) {
  constexpr int64_t kBytes = 16 << 20;
  const TempDir directory;
  const auto path = directory.path() / "file";
  const UniqueFd fd = create(path, kBytes);
  Buffer buffer(1 << 20);
  DirectWriter writer(path, fd.get(), buffer.bytes);
  if (!writer.is_direct()) GTEST_SKIP() << "no O_DIRECT in " << directory.path();
  const std::vector<std::byte> bytes(static_cast<size_t>(kBytes - 5), std::byte{7});
  ASSERT_EQ(writer.write(5, bytes), 0);
  ASSERT_EQ(writer.end_run(), 0);
  void* mapped = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::vector<unsigned char> resident(kBytes / kPage);
  ASSERT_EQ(::mincore(mapped, kBytes, resident.data()), 0);
  ::munmap(mapped, kBytes);
  EXPECT_LE(std::ranges::count_if(resident, [](unsigned char r) { return r & 1; }), 2);
}

TEST(DirectWriter, SaysWhatAFullDiskSays) {
  const testing::FileSizeLimit limit(4 << 20);
  const TempDir directory;
  const auto path = directory.path() / "file";
  const UniqueFd fd = create(path, 4 << 20);
  Buffer buffer(1 << 20);
  DirectWriter writer(path, fd.get(), buffer.bytes);
  const std::vector<std::byte> bytes(6 << 20, std::byte{7});
  EXPECT_EQ(writer.write(0, bytes), EFBIG);
}

}  // namespace
}  // namespace ferry
