#include "src/base/process/out_of_memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace ferry {
namespace {

TEST(OutOfMemory, IsToldWithACureWhoeverNoticedIt) {
  const auto holds = [](const std::exception& e) {
    const auto error = out_of_memory(e);
    if (!error) return false;
    const std::string text = error->what();
    EXPECT_EQ(error->exit_code(), 3);
    EXPECT_NE(text.find("host memory ran out"), std::string::npos) << text;
    EXPECT_NE(text.find("--resume"), std::string::npos) << text;
    EXPECT_EQ(text.find("frame #0"), std::string::npos) << text;
    return true;
  };
  EXPECT_TRUE(holds(std::bad_alloc()));
  EXPECT_TRUE(holds(std::system_error(EAGAIN, std::generic_category())));
  EXPECT_TRUE(holds(std::system_error(ENOMEM, std::generic_category(), "mmap")));
  EXPECT_TRUE(holds(std::runtime_error(
      "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: "
      "you tried to allocate 4096 bytes. Error code 12\nframe #0: somewhere")));
  EXPECT_TRUE(holds(std::runtime_error("pthread_create has failed: Resource temporarily ...")));

  EXPECT_FALSE(holds(std::runtime_error("no such file")));
  EXPECT_FALSE(holds(std::system_error(EIO, std::generic_category())));
  EXPECT_FALSE(holds(Error(Fault::data, "x", "not enough memory cells in the table")));
}

/** Where nobody can catch it, as in a thread, it is told all the same. */
TEST(OutOfMemoryDeath, InAThreadEndsWithItsExitCode) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        end_on_lost_memory();
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(3), "host memory ran out - end other programs");
  EXPECT_EXIT(
      {
        end_on_lost_memory();
        std::thread([] { throw std::logic_error("a bug"); }).join();
      },
      testing::KilledBySignal(SIGABRT), "a bug");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they have their own `new`
/** Bytes of the process's data. */
rlim_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return std::stoull(line.substr(7)) << 10;
  return 0;
}

/** Takes all memory that a limit leaves, then counts the small blocks that are still to be had. */
[[noreturn]] void run_out(bool has_reserve) {
  constexpr size_t kLarge_bytes = 1 << 16, kSmall_bytes = 128;
  constexpr int kSmall = 4000;
  if (has_reserve) keep_memory_reserve();
  const rlim_t now = data_bytes();
  const rlimit nothing_more = {now, now};
  ::setrlimit(RLIMIT_DATA, &nothing_more);
  try {
    while (true)
      static_cast<void>(::operator new(kLarge_bytes));
  } catch (const std::bad_alloc&) {
    int n = 0;
    while (n < kSmall && std::malloc(kSmall_bytes))
      ++n;
    ::_exit(n == kSmall ? 0 : 1);
  }
}

TEST(OutOfMemoryDeathTest, LeavesSomeToTellOfIt) {
  EXPECT_EXIT(run_out(/*has_reserve=*/true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(run_out(/*has_reserve=*/false), testing::ExitedWithCode(1), "");
}
#endif

}  // namespace
}  // namespace ferry
