// Machines that forbid io_uring or locked memory, and drives that fail, delay and stop. What takes
// other programs or rights is skipped where they are not there.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <thread>

#include "src/base/error.h"
#include "tests/offload/nvme/disk_fixture.h"

extern char** environ;

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

/** As containers do it: io_uring_setup gives EPERM from here on. */
bool forbid_io_uring() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/** Root may lock all the memory it likes, but for this. */
bool give_up_locking() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2];
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  data[0].effective &= ~(1U << CAP_IPC_LOCK);
  return ::syscall(SYS_capset, &header, data) == 0;
}

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
    const rlimit limit{64 << 10, 64 << 10};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) leave(77);
    if (!give_up_locking()) leave(77);
    auto disk = open_disk({file()}, kWindow_bytes, {.window = window_.all()});
    if (disk->transport() != "io_uring" || !serves(*disk, window_.all())) leave(1);
    leave(0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0),
              "nvme: 8.0 MiB of buffers could not be registered \\(Cannot allocate memory\\); "
              "transfers go on without");
}

/** A file that nbdkit serves through FUSE, with filters that make it a bad drive. */
class ServedFile {
 public:
  /** Words of nbdkit. `why` says what is missing. */
  ServedFile(const TempDir& directory, std::vector<std::string> filters, std::string& why)
      : path_(directory.write("served", "")) {
    if (::access("/dev/fuse", R_OK | W_OK) != 0) {
      why = "there is no /dev/fuse for this user";
      return;
    }
    // It ends with this process, however that ends.
    std::vector<std::string> words = {"setpriv", "--pdeathsig",  "TERM",
                                      "nbdfuse", path_.string(), "--command",
                                      "nbdkit",  "-s",           "--exit-with-parent"};
    for (std::string& word : filters)
      words.push_back(std::move(word));
    std::vector<char*> pointers;
    for (std::string& word : words)
      pointers.push_back(word.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    ::posix_spawn_file_actions_init(&quiet);
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO})
      ::posix_spawn_file_actions_addopen(&quiet, fd, "/dev/null", O_WRONLY, 0);
    const int code =
        ::posix_spawnp(&server_, words[0].c_str(), &quiet, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&quiet);
    if (code != 0) {
      server_ = 0;
      why = "setpriv is not installed";
      return;
    }
    for (int i = 0; i < 1000; ++i) {
      if (fs::file_size(path_) > 0) return;
      if (::waitpid(server_, nullptr, WNOHANG) == server_) {
        server_ = 0;
        break;
      }
      std::this_thread::sleep_for(10ms);
    }
    why = "nbdfuse or nbdkit is not installed, or does not start";
  }
  ~ServedFile() {
    if (server_ == 0) return;
    ::kill(server_, SIGTERM);  // unmounts
    ::waitpid(server_, nullptr, 0);
  }
  const fs::path& path() const { return path_; }
  /** Returns when all of its threads stand still. */
  void stop() {
    ::kill(server_, SIGSTOP);
    for (const auto& thread : fs::directory_iterator("/proc/" + std::to_string(server_) + "/task"))
      while (read_file(thread.path() / "status").find("State:\tT") == std::string::npos)
        std::this_thread::sleep_for(1ms);
  }
  void go_on() { ::kill(server_, SIGCONT); }

 private:
  fs::path path_;
  pid_t server_ = 0;
};

class BadDrive : public EachTransport {
 protected:
  static constexpr int64_t kBytes = 4 * kMiB;

  /** A disk on the served file; null, and the test is skipped, where that cannot be. */
  std::unique_ptr<FileDisk> open_served(std::vector<std::string> filters,
                                        const DiskOptions& options) {
    std::string why;
    served_ = std::make_unique<ServedFile>(directory_, std::move(filters), why);
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
