// Disks give back what was written to them: at any place and size, from many threads, over several
// files, and when the system moves less than it was asked for.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <numeric>
#include <random>
#include <thread>

#include "offload/nvme/disk_queue.h"
#include "src/base/error.h"
#include "tests/offload/nvme/disk_fixture.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kSector = kDiskAlignment_bytes;

void write_all(Disk& disk, int64_t offset, const AlignedMemory& memory, uint64_t seed) {
  fill(memory.all(), offset, seed);
  disk.wait(disk.write(offset, memory.all()));
}

void expect_all(Disk& disk, int64_t n_bytes, uint64_t seed) {
  AlignedMemory memory(n_bytes);
  disk.wait(disk.read(0, memory.all()));
  EXPECT_EQ(first_wrong(memory.all(), 0, seed), -1);
}

TEST_P(EachTransport, ReadsWhatWasWritten) {
  constexpr int64_t kBytes = 24 * kMiB;
  auto disk = open({file()}, kBytes, {.request_bytes = 64 * kKiB, .depth = 7});
  if (!disk) return;
  EXPECT_EQ(disk->n_bytes(), kBytes);
  EXPECT_EQ(disk->alignment(), kSector);
  EXPECT_EQ(disk->name(), file().string());
  std::mt19937 random(1);
  std::vector<int64_t> ends = {0};
  while (ends.back() < kBytes)
    ends.push_back(std::min<int64_t>(
        kBytes, ends.back() + kSector * std::uniform_int_distribution(1, 512)(random)));
  std::vector<int64_t> order(ends.size() - 1);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (const int64_t i : order) {
    const auto k = static_cast<size_t>(i);
    const auto part = window_.part(0, ends[k + 1] - ends[k]);
    fill(part, ends[k], 7);
    disk->wait(disk->write(ends[k], part));
  }
  disk->flush();
  expect_all(*disk, kBytes, 7);

  disk.reset();
  auto again = open_disk({file()}, kBytes, {.must_exist = true});
  expect_all(*again, kBytes, 7);
}

TEST_P(EachTransport, KeepsManyRequestsUnderWayAtOnce) {
  constexpr int64_t kPart = 40 * kKiB, kParts = 100;
  auto disk = open({file()}, kPart * kParts, {.request_bytes = 16 * kKiB, .depth = 3});
  if (!disk) return;
  std::vector<DiskTicket> tickets;
  fill(window_.part(0, kPart * kParts), 0, 3);
  for (int64_t i = 0; i < kParts; ++i)
    tickets.push_back(disk->write(i * kPart, window_.part(i * kPart, kPart)));
  for (auto ticket = tickets.rbegin(); ticket != tickets.rend(); ++ticket)
    disk->wait(*ticket);
  std::ranges::fill(window_.all(), std::byte{0});
  tickets.clear();
  for (int64_t i = kParts; i-- > 0;)
    tickets.push_back(disk->read(i * kPart, window_.part(i * kPart, kPart)));
  for (const DiskTicket ticket : tickets)
    disk->wait(ticket);
  EXPECT_EQ(first_wrong(window_.part(0, kPart * kParts), 0, 3), -1);
}

TEST_P(EachTransport, ServesManyThreads) {
  constexpr int64_t kShare = 2 * kMiB;
  constexpr int kThreads = 6, kRounds = 60;
  auto disk =
      open({file("a"), file("b")}, kShare * kThreads, {.request_bytes = 128 * kKiB, .depth = 4});
  if (!disk) return;
  std::atomic<int64_t> n_wrong = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        AlignedMemory memory(kShare);
        const int64_t base = t * kShare;
        write_all(*disk, base, memory, 0);
        std::vector<uint64_t> seeds(kShare / kSector, 0);  // by sector
        for (int round = 1; round <= kRounds; ++round) {
          const int64_t n = std::uniform_int_distribution<int64_t>(1, 128)(random);
          const int64_t first =
              std::uniform_int_distribution<int64_t>(0, kShare / kSector - n)(random);
          const auto part = memory.part(0, n * kSector);
          if (round % 2 == 0) {
            fill(part, base + first * kSector, static_cast<uint64_t>(round));
            disk->wait(disk->write(base + first * kSector, part));
            std::fill_n(seeds.begin() + first, n, round);
          } else {
            disk->wait(disk->read(base + first * kSector, part));
            for (int64_t s = 0; s < n; ++s)
              n_wrong +=
                  first_wrong(memory.part(s * kSector, kSector), base + (first + s) * kSector,
                              seeds[static_cast<size_t>(first + s)]) >= 0;
          }
          if (round % 20 == 0) disk->flush();
        }
      });
  }
  EXPECT_EQ(n_wrong, 0);
}

TEST_P(EachTransport, SharesStripesAmongFiles) {
  constexpr int64_t kBytes = 5 * kStripe_bytes + 3 * kSector;
  const std::vector<fs::path> files = {file("a"), file("b"), file("c")};
  {
    auto disk = open(files, kBytes, {.request_bytes = 3 * kSector});
    if (!disk) return;
    AlignedMemory memory(kBytes);
    write_all(*disk, 0, memory, 11);
    expect_all(*disk, kBytes, 11);
    EXPECT_EQ(disk->name(),
              file("a").string() + ", " + file("b").string() + ", " + file("c").string());
  }
  for (const fs::path& path : files)
    EXPECT_EQ(fs::file_size(path), static_cast<uintmax_t>(2 * kStripe_bytes));
  // Stripe 4 is the second of file b.
  const std::string text = read_file(file("b")).substr(kStripe_bytes);
  EXPECT_EQ(first_wrong(std::as_bytes(std::span(text)), 4 * kStripe_bytes, 11), -1);
}

/** The system moves less than it was asked for, at whole sectors and not. */
TEST_P(EachTransport, GoesOnAfterShortTransfers) {
  constexpr int64_t kBytes = 6 * kMiB;
  std::atomic<int64_t> n_short = 0;
  DiskFaults faults{.n_bytes_asked = [&](const DiskPiece& piece) {
    if (piece.n_bytes <= kSector) return piece.n_bytes;
    ++n_short;
    return piece.n_bytes / 3 / kSector * kSector + kSector;
  }};
  faults.answer = [](const DiskPiece&, int64_t result) {
    return result > 3 * kSector ? result - 700 : result;  // the last of them is moved again
  };
  auto disk = open({file()}, kBytes, {.request_bytes = 512 * kKiB, .faults = &faults});
  if (!disk) return;
  AlignedMemory memory(kBytes);
  write_all(*disk, 0, memory, 5);
  expect_all(*disk, kBytes, 5);
  EXPECT_GT(n_short, 100);
}

TEST_P(EachTransport, AsksAgainWhereTheSystemIsInterrupted) {
  constexpr int64_t kBytes = 2 * kMiB;
  std::atomic<int> n_answers = 0;
  const DiskFaults faults{.answer = [&](const DiskPiece&, int64_t result) -> int64_t {
    const int n = n_answers++;
    return n % 3 == 0 ? -EINTR : n % 3 == 1 ? -EAGAIN : result;
  }};
  auto disk = open({file()}, kBytes, {.request_bytes = 128 * kKiB, .depth = 4, .faults = &faults});
  if (!disk) return;
  AlignedMemory memory(kBytes);
  write_all(*disk, 0, memory, 9);
  disk->flush();
  expect_all(*disk, kBytes, 9);
  EXPECT_GE(n_answers, 3 * 33);
}

TEST_P(EachTransport, NamesFilePlaceAndCauseOfAFailure) {
  constexpr int64_t kBytes = 4 * kStripe_bytes;
  std::atomic<int> code = EIO;
  const DiskFaults faults{.answer = [&](const DiskPiece& piece, int64_t result) -> int64_t {
    const bool is_bad = piece.file == 1 && piece.offset_bytes == kStripe_bytes + kMiB;
    return is_bad || piece.operation == DiskOperation::flush ? -code : result;
  }};
  auto disk = open({file("a"), file("b")}, kBytes, {.faults = &faults});
  if (!disk) return;
  AlignedMemory memory(kBytes);
  fill(memory.all(), 0, 1);
  const std::string eio =
      error_of([&] { disk->wait(disk->write(0, memory.all())); }, Fault::machine);
  EXPECT_THAT(eio,
              HasSubstr("'" + file("b").string() +
                        "' could not be written at byte 3145728 (1.0 MiB): Input/output error"));
  EXPECT_THAT(eio, HasSubstr("smartctl"));
  code = ENOSPC;
  EXPECT_THAT(error_of([&] { disk->wait(disk->write(0, memory.all())); }, Fault::machine),
              HasSubstr("free some space there"));
  code = EIO;
  EXPECT_THAT(error_of([&] { disk->wait(disk->read(0, memory.all())); }, Fault::machine),
              HasSubstr("could not be read at byte 3145728"));
  EXPECT_THAT(error_of([&] { disk->flush(); }, Fault::machine),
              HasSubstr("could not be flushed: "));
  // Other places, and the same one once the drive is well, serve as before.
  code = 0;
  fill(memory.all(), 0, 2);
  disk->wait(disk->write(0, memory.part(0, kStripe_bytes)));
  const auto first = memory.part(0, kStripe_bytes);
  disk->wait(disk->read(0, first));
  EXPECT_EQ(first_wrong(first, 0, 2), -1);
}

TEST_P(EachTransport, AFileThatWasCutShortEndsTheRead) {
  auto disk = open({file()}, 4 * kMiB);
  if (!disk) return;
  fs::resize_file(file(), kMiB + 100);
  EXPECT_THAT(
      error_of([&] { disk->wait(disk->read(0, window_.part(0, 4 * kMiB))); }, Fault::machine),
      HasSubstr("the file ends before - another program has cut it short"));
}

/** A drive that never answers: nothing may wait for it longer than the deadline, least of all the
 * end of the disk. */
TEST_P(EachTransport, ADriveThatDoesNotAnswerEndsEveryWait) {
  window_.keep();
  auto answers = std::make_shared<std::latch>(1);
  const DiskFaults faults{.answer = [answers](const DiskPiece&, int64_t result) {
    answers->wait();
    return result;
  }};
  auto disk = open({file()}, 4 * kMiB,
                   {.depth = 2, .deadline = std::chrono::milliseconds(300), .faults = &faults});
  if (!disk) {
    answers->count_down();
    return;
  }
  const DiskTicket first = disk->read(0, window_.part(0, 4 * kMiB));
  const DiskTicket second = disk->read(kMiB, window_.part(4 * kMiB, kMiB));
  const std::string late = error_of([&] { disk->wait(first); }, Fault::machine);
  EXPECT_THAT(late, HasSubstr("the drive gave no answer for 0.3 s - see `dmesg`"));
  EXPECT_THAT(error_of([&] { disk->wait(second); }, Fault::machine),
              HasSubstr("could not be read at byte 1048576 (1.0 MiB): the drive gave no answer"));
  EXPECT_THAT(error_of([&] { disk->flush(); }, Fault::machine), HasSubstr("could not be flushed"));
  disk.reset();
  answers->count_down();
}

TEST_P(EachTransport, EndsWithRequestsThatNobodyWaitedFor) {
  auto disk = open({file()}, kWindow_bytes, {.request_bytes = 64 * kKiB});
  if (!disk) return;
  for (int i = 0; i < 100; ++i)
    disk->write(0, window_.all());
  disk.reset();
}

TEST_P(EachTransport, TheFileStaysUsableWhereItsDirectoryIsRemoved) {
  const fs::path inner = directory_ / "inner";
  fs::create_directory(inner);
  auto disk = open({inner / "blocks"}, 4 * kMiB);
  if (!disk) return;
  AlignedMemory memory(4 * kMiB);
  fs::remove_all(inner);
  write_all(*disk, 0, memory, 4);
  disk->flush();
  expect_all(*disk, 4 * kMiB, 4);
  disk.reset();
  EXPECT_THAT(error_of([&] { open_disk({inner / "blocks"}, 4 * kMiB); }, Fault::usage),
              HasSubstr("is no directory - make it first"));
}

TEST_F(DiskTest, WhatIsNotAlignedIsABug) {
  GTEST_FLAG_SET(death_test_style, "fast");  // it dies in this thread, before any lock
  const auto disk = open_disk({file()}, 4 * kMiB);
  EXPECT_DEATH(disk->read(512, window_.part(0, kSector)), "all are to be multiples of 4096");
  EXPECT_DEATH(disk->write(0, window_.part(0, 512)), "all are to be multiples of 4096");
  EXPECT_DEATH(disk->write(0, window_.part(512, kSector)), "all are to be multiples of 4096");
  EXPECT_DEATH(disk->read(4 * kMiB - kSector, window_.part(0, 2 * kSector)), "which has 4194304");
  const DiskTicket ticket = disk->read(0, window_.part(0, kSector));
  disk->wait(ticket);
  EXPECT_DEATH(disk->wait(ticket), "was waited for");
}

INSTANTIATE_TEST_SUITE_P(,
                         EachTransport,
                         testing::Values(Transport::ring, Transport::registered, Transport::pool),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace ferry::test
