// Machines that forbid io_uring or locked memory, and drives that fail, delay and stop. What takes
// other programs or rights is skipped where they are not there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "src/base/error.h"
#include "tests/offload/nvme/disk_fixture.h"
#include "tests/offload/nvme/forbid.h"
#include "tests/offload/nvme/served_file.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

bool serves(Disk& disk, std::span<std::byte> memory) {
  fill(memory, 0, 42);
  disk.wait(disk.write(0, memory));
  disk.flush();
  std::ranges::fill(memory, std::byte{0});
  disk.wait(disk.read(0, memory));
  return first_wrong(memory, 0, 42) == -1;
}

class BadMachine : public DiskTest {
 protected:
  /** The end of a child: its directory goes, as its parent's will. */
  [[noreturn]] void leave(int code) {
    fs::remove_all(directory_.path());
    ::_exit(code);
  }
  void SetUp() override {
    DiskTest::SetUp();
    // A child with one thread of its own, which has said nothing yet.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(BadMachine, WithoutIoUringThreadsServeAndItIsSaidOnce) {
  const auto run = [&] {
    if (!forbid_io_uring()) leave(77);
    for (int i = 0; i < 2; ++i) {
      auto disk = open_disk({file()}, kWindow_bytes);
      if (disk->transport() != "pread and pwrite" || !serves(*disk, window_.all())) leave(1);
    }
    leave(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              "^nvme: io_uring cannot be used \\([^)]*\\); threads that call pread and pwrite take "
              "its place\n$");
}

TEST_F(BadMachine, WithoutLockedMemoryTransfersGoOnUnregistered) {
  if (auto disk = open_disk({file()}, kWindow_bytes); disk->transport() != "io_uring")
    GTEST_SKIP() << "this machine has no io_uring";
  const auto run = [&] {
    if (!give_up_locking()) leave(77);
    auto disk = open_disk({file()}, kWindow_bytes, {.window = window_.all()});
    if (disk->transport() != "io_uring" || !serves(*disk, window_.all())) leave(1);
    leave(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              "nvme: 8.0 MiB of buffers could not be registered \\(Cannot allocate memory\\); "
              "transfers go on without");
}

class BadDrive : public EachTransport {
 protected:
  static constexpr int64_t kBytes = 4 * kMiB;

  /** A disk on the served file; null, and the test is skipped, where that cannot be. */
  std::unique_ptr<FileDisk> open_served(std::vector<std::string> filters,
                                        const DiskOptions& options) {
    std::string why;
    served_ = std::make_unique<ServedFile>(file("served"), std::move(filters), why);
    if (!why.empty()) {
      skip(why);
      return nullptr;
    }
    return open({served_->path()}, kBytes, options);
  }
  std::string backing() {
    directory_.write("backing", "");
    fs::resize_file(file("backing"), kBytes);
    return file("backing").string();
  }

  std::unique_ptr<ServedFile> served_;

 private:
  static void skip(const std::string& why) { GTEST_SKIP() << why; }
};

TEST_P(BadDrive, AFaultOfTheDriveIsNamedAndPasses) {
  const fs::path trigger = directory_ / "trigger";
  auto disk = open_served({"--filter=error", "file", backing(), "error=EIO", "error-rate=100%",
                           "error-file=" + trigger.string()},
                          {.request_bytes = 64 * kKiB});
  if (!disk) return;
  EXPECT_TRUE(serves(*disk, window_.part(0, kBytes)));
  directory_.write("trigger", "");
  for (const bool writes : {true, false})
    EXPECT_THAT(error_of(
                    [&] {
                      const auto part = window_.part(0, kMiB);
                      disk->wait(writes ? disk->write(kMiB, part) : disk->read(kMiB, part));
                    },
                    Fault::machine),
                AllOf(HasSubstr("'" + served_->path().string() + "' could not be "),
                      HasSubstr(writes ? "written at byte 1" : "read at byte 1"),
                      HasSubstr("Input/output error - the drive or its connection failed")));
  fs::remove(trigger);
  EXPECT_TRUE(serves(*disk, window_.part(0, kBytes)));
}

/** Each request takes a hundred times what it does on a drive, and none of them its deadline. */
TEST_P(BadDrive, ASlowDriveIsWaitedFor) {
  auto disk =
      open_served({"--filter=delay", "file", backing(), "delay-read=15ms", "delay-write=15ms"},
                  {.request_bytes = 256 * kKiB, .deadline = 60s});
  if (!disk) return;
  EXPECT_TRUE(serves(*disk, window_.part(0, kBytes)));
}

/** Its server stands still until the disk is gone: a wait for it would never end. */
TEST_P(BadDrive, ADriveThatStopsIsGivenUp) {
  window_.keep();
  auto disk = open_served({"file", backing()}, {.request_bytes = kMiB, .deadline = 400ms});
  if (!disk) return;
  EXPECT_TRUE(serves(*disk, window_.part(0, kBytes)));
  served_->stop();
  const DiskTicket first = disk->write(0, window_.part(0, kBytes));
  const DiskTicket second = disk->read(0, window_.part(kBytes, kMiB));
  EXPECT_THAT(error_of([&] { disk->wait(first); }, Fault::machine),
              AllOf(HasSubstr("could not be written at byte "),
                    HasSubstr("the drive gave no answer for 0.4 s - see `dmesg`")));
  EXPECT_THAT(error_of([&] { disk->wait(second); }, Fault::machine), HasSubstr("no answer"));
  EXPECT_THAT(error_of([&] { disk->flush(); }, Fault::machine), HasSubstr("no answer"));
  disk.reset();
  served_->go_on();
}

INSTANTIATE_TEST_SUITE_P(,
                         BadDrive,
                         testing::Values(Transport::ring, Transport::registered, Transport::pool),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace ferry::test
