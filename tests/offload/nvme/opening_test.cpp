// What is refused before a byte is written, each with what to do, and what is left behind: nothing.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "offload/nvme/drive.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "tests/offload/nvme/disk_fixture.h"
#include "tests/offload/nvme/mounted.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class Opening : public DiskTest {};

TEST_F(Opening, AMissingDirectoryIsNamed) {
  EXPECT_THAT(error_of([&] { open_disk({file("no/blocks")}, kMiB); }, Fault::usage),
              AllOf(HasSubstr("/no' is no directory"), HasSubstr("make it first")));
  directory_.write("text", "x");
  EXPECT_THAT(error_of([&] { open_disk({file("text/blocks")}, kMiB); }, Fault::usage),
              HasSubstr("/text' is no directory"));
  EXPECT_THAT(error_of([&] { open_disk({file()}, kMiB, {.must_exist = true}); }, Fault::usage),
              HasSubstr("could not be opened: No such file"));
}

TEST_F(Opening, WhoOnlyReadsLeavesAllToOthers) {
  const DiskOptions reads{.reads_only = true};
  EXPECT_THAT(error_of([&] { open_disk({file()}, kMiB, reads); }, Fault::usage),
              HasSubstr("could not be opened: No such file"));
  EXPECT_EQ(directory_.n_entries(), 0u);
  const auto writer = open_disk({file()}, kMiB);
  const auto part = window_.part(0, kMiB);
  fill(part, 0, 5);
  writer->wait(writer->write(0, part));
  const auto reader = open_disk({file()}, kMiB, reads);  // no lock
  std::ranges::fill(part, std::byte{0});
  reader->wait(reader->read(0, part));
  EXPECT_EQ(first_wrong(part, 0, 5), -1);
  EXPECT_THAT(error_of([&] { reader->wait(reader->write(0, part)); }, Fault::machine),
              HasSubstr(file().string()));
  EXPECT_THAT(error_of([&] { open_disk({file()}, 2 * kMiB, reads); }, Fault::data),
              AllOf(HasSubstr("has 1048576 bytes, expected 2097152"), HasSubstr("copied")));
}

TEST_F(Opening, ADirectoryIsNoFile) {
  fs::create_directory(file());
  EXPECT_THAT(error_of([&] { open_disk({file()}, kMiB); }, Fault::machine),
              HasSubstr("a directory has that name"));
}

TEST_F(Opening, TooLittleSpaceLeavesNothing) {
  constexpr int64_t kMore_bytes = int64_t{1} << 50;
  const std::string message = error_of(
      [&] {
        open_disk({file("a"), file("b")}, kMore_bytes);
      },
      Fault::does_not_fit);
  EXPECT_THAT(message, AllOf(HasSubstr("/a' needs 524288.00 GiB more, and its drive has "),
                             HasSubstr(" free - free some space there")));
  EXPECT_EQ(directory_.n_entries(), 0u);
}

TEST_F(Opening, TheLaterOfTwoDrivesThatIsFullLeavesNothingOnTheFirst) {
  const Mounted small(directory_ / "small", "tmpfs", "size=16m");
  if (!small) GTEST_SKIP() << kNoMount;
  if (!takes_direct(small.path())) GTEST_SKIP() << "tmpfs takes no direct transfers here";
  EXPECT_THAT(error_of(
                  [&] {
                    open_disk({file("a"), small / "b"}, 64 * kMiB);
                  },
                  Fault::does_not_fit),
              HasSubstr("/small/b' needs 32.0 MiB more, and its drive has 16.0 MiB free"));
  EXPECT_FALSE(fs::exists(file("a")));
  EXPECT_TRUE(fs::is_empty(small.path()));
  open_disk({small / "b"}, 8 * kMiB);
}

TEST_F(Opening, ALimitOnFileSizesIsNamed) {
  const FileSizeLimit limit(kMiB);
  EXPECT_THAT(error_of([&] { open_disk({file()}, 64 * kMiB); }, Fault::machine),
              AllOf(HasSubstr("may not be as large as 64.0 MiB"), HasSubstr("ulimit -f")));
  EXPECT_EQ(directory_.n_entries(), 0u);
}

TEST_F(Opening, AReadOnlyFileSystemIsNamed) {
  const Mounted read_only(directory_ / "ro", "tmpfs", "size=16m", MS_RDONLY);
  if (!read_only) GTEST_SKIP() << kNoMount;
  EXPECT_THAT(error_of([&] { open_disk({read_only / "blocks"}, kMiB); }, Fault::machine),
              AllOf(HasSubstr("could not be made: Read-only"), HasSubstr("mount it for writing")));
}

TEST_F(Opening, AFileSystemWithoutDirectTransfersIsNamed) {
  EXPECT_THAT(error_of([] { open_disk({"/proc/self/comm"}, kMiB); }, Fault::usage),
              AllOf(HasSubstr("takes no direct transfers (O_DIRECT)"), HasSubstr("ext4")));
  const Mounted memory(directory_ / "ramfs", "ramfs", "");
  if (!memory) GTEST_SKIP() << kNoMount;
  if (takes_direct(memory.path())) GTEST_SKIP() << "ramfs takes direct transfers here";
  EXPECT_THAT(error_of([&] { open_disk({memory / "blocks"}, kMiB); }, Fault::usage),
              HasSubstr("takes no direct transfers"));
  EXPECT_TRUE(fs::is_empty(memory.path()));
}

TEST_F(Opening, NetworksAreKnownByTheirNumbers) {
  EXPECT_EQ(network_of(0x6969), "NFS");
  EXPECT_EQ(network_of(0xFF534D42), "SMB");
  EXPECT_EQ(network_of(0x01021997), "9P");
  for (const uint32_t local : {0xEF53U, 0x58465342U, 0x9123683EU, 0x01021994U, 0x65735546U})
    EXPECT_EQ(network_of(local), "");
}

TEST_F(Opening, MemoryIsSaidToBeNoDrive) {
  const Mounted memory(directory_ / "memory", "tmpfs", "size=16m");
  if (!memory) GTEST_SKIP() << kNoMount;
  if (!takes_direct(memory.path())) GTEST_SKIP() << "tmpfs takes no direct transfers here";
  std::string said;
  const Listening listening([&](std::string_view line) { said += line; });
  open_disk({memory / "blocks"}, kMiB);
  EXPECT_THAT(said, HasSubstr("is host memory (tmpfs) and no drive"));
}

TEST_F(Opening, TheFileOfAnotherRunIsRefused) {
  auto first = open_disk({file()}, kMiB);
  EXPECT_THAT(error_of([&] { open_disk({file()}, kMiB); }, Fault::machine),
              AllOf(HasSubstr("is in use by another run"), HasSubstr("ferry runs ls")));
  first.reset();
  open_disk({file()}, kMiB);
}

/** One that could not start removes the file that it made, while another waits for the lock on it.
 */
TEST_F(Opening, AFileThatIsRemovedMeanwhileIsNotUsed) {
  auto first = open_disk({file()}, kMiB);
  std::string message;
  std::jthread second(
      [&] { message = error_of([&] { open_disk({file()}, kMiB); }, Fault::machine); });
  const auto n_open = [&] {
    std::error_code error;
    return std::ranges::count_if(fs::directory_iterator("/proc/self/fd"), [&](const auto& link) {
      return fs::read_symlink(link.path(), error) == file();
    });
  };
  while (n_open() < 2)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  fs::remove(file());
  first.reset();
  second.join();
  EXPECT_THAT(message, HasSubstr("was removed by another run - start again"));
}

/** The kernel still has transfers of it when the next run comes. */
TEST_F(Opening, TheFileOfAKilledRunIsFree) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto disk = open_disk({file()}, 64 * kMiB, {.depth = 64});
    ::close(::open(file("ready").c_str(), O_CREAT | O_WRONLY, 0600));
    for (;;)
      for (int64_t at = 0; at < 64 * kMiB; at += kWindow_bytes)
        disk->wait(disk->write(at, window_.all()));
  }
  while (!fs::exists(file("ready")))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(open_disk({file()}, 64 * kMiB)->n_bytes(), 64 * kMiB);
}

TEST_F(Opening, WhatAFileHoldsStaysWhereItGrows) {
  {
    auto disk = open_disk({file()}, kMiB);
    fill(window_.part(0, kMiB), 0, 1);
    disk->wait(disk->write(0, window_.part(0, kMiB)));
  }
  auto disk = open_disk({file()}, 4 * kMiB, {.must_exist = true});
  disk->wait(disk->read(0, window_.part(0, 4 * kMiB)));
  EXPECT_EQ(first_wrong(window_.part(0, kMiB), 0, 1), -1);
  const auto rest = window_.part(kMiB, 3 * kMiB);
  EXPECT_TRUE(std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; }));
  struct stat found {};
  ASSERT_EQ(::stat(file().c_str(), &found), 0);
  EXPECT_GE(found.st_blocks * 512, 4 * kMiB);  // no holes
  EXPECT_EQ(found.st_mode & 0777, 0600U);
}

TEST_F(Opening, ADriveIsKnownAgain) {
  const std::string id = drive_id_of(directory_.path());
  directory_.write("a/b/c", "x");
  EXPECT_TRUE(is_on_drive(directory_ / "a/b", id)) << id;
  EXPECT_TRUE(is_on_drive(directory_ / "a/b/c", id)) << id;
  EXPECT_FALSE(is_on_drive("/proc", id));
  EXPECT_FALSE(is_on_drive(directory_.path(), "01234567-89ab-cdef-0123-456789abcdef/1-2"));
  EXPECT_FALSE(is_on_drive(directory_.path(), ""));
  // A kernel that tells no UUID, before or now: the number alone is compared.
  EXPECT_TRUE(is_on_drive(directory_.path(), id.substr(id.find('/'))));
  EXPECT_FALSE(is_on_drive(directory_.path(), id.substr(id.find('/')) + "0"));
  EXPECT_THAT(error_of([&] { drive_id_of(file("gone")); }, Fault::machine),
              HasSubstr("connect and mount the drive"));
  const Mounted other(directory_ / "other", "tmpfs", "size=16m");
  if (!other) GTEST_SKIP() << kNoMount;
  EXPECT_FALSE(is_on_drive(other.path(), id));
}

TEST_F(Opening, TheVariableThatForbidsIsRead) {
  ::setenv("FERRY_NO_IO_URING", "1", 1);
  EXPECT_EQ(open_disk({file()}, kMiB)->transport(), "pread and pwrite");
  ::setenv("FERRY_NO_IO_URING", "yes", 1);
  EXPECT_THAT(error_of([&] { open_disk({file()}, kMiB); }, Fault::usage),
              HasSubstr("FERRY_NO_IO_URING is 'yes', expected 1 or 0"));
  ::unsetenv("FERRY_NO_IO_URING");
}

}  // namespace
}  // namespace ferry::test
