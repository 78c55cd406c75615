#include "src/plan/host_memory.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/base/bytes.h"

namespace ferry {
namespace {

class HostMemoryTest : public ::testing::Test {
 protected:
  HostMemoryTest() {
    root_ = std::filesystem::temp_directory_path() / ("host_memory_" + std::to_string(::getpid()));
    write("proc/meminfo",
          "MemTotal:       16777216 kB\nMemFree:         1000 kB\nMemAvailable:   12582912 kB\n");
  }
  ~HostMemoryTest() override { std::filesystem::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  std::filesystem::path root_;
};

TEST_F(HostMemoryTest, WithoutALimitWhatIsAvailableLessAMargin) {
  write("sys/fs/cgroup/memory.max", "max\n");
  HostMemory m = read_host_memory(root_);
  EXPECT_EQ(m.available_bytes, 12 * kGiB);
  EXPECT_FALSE(m.cgroup_limit_bytes.has_value());
  EXPECT_EQ(m.budget_bytes(), 12 * kGiB - 12 * kGiB / 20);
}

TEST_F(HostMemoryTest, TheCgroupLeavesLess) {
  write("sys/fs/cgroup/memory.max", std::to_string(4 * kGiB));
  write("sys/fs/cgroup/memory.current", std::to_string(1 * kGiB));
  EXPECT_EQ(read_host_memory(root_).budget_bytes(), 3 * kGiB - 512 * kMiB);
}

TEST_F(HostMemoryTest, TheOlderCgroupWritesAHugeNumberForNone) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_FALSE(read_host_memory(root_).cgroup_limit_bytes.has_value());
}

TEST_F(HostMemoryTest, ALimitAboveMemTotalIsAMachineThatGrows) {
  write("sys/fs/cgroup/memory.max", std::to_string(128 * kGiB));
  write("sys/fs/cgroup/memory.current", "0");
  EXPECT_GT(read_host_memory(root_).budget_bytes(), 100 * kGiB);
}

}  // namespace
}  // namespace ferry
