#include "src/base/process/host_memory.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

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
  EXPECT_EQ(m.free_bytes(), 12 * kGiB);
  EXPECT_FALSE(m.cgroup_limit_bytes.has_value());
  EXPECT_EQ(m.budget_bytes(), 12 * kGiB - 12 * kGiB / 20);
}

TEST_F(HostMemoryTest, TheCgroupLeavesLess) {
  write("sys/fs/cgroup/memory.max", std::to_string(4 * kGiB));
  write("sys/fs/cgroup/memory.current", std::to_string(1 * kGiB));
  EXPECT_EQ(read_host_memory(root_).free_bytes(), 3 * kGiB);
  EXPECT_EQ(read_host_memory(root_).budget_bytes(), 3 * kGiB - 512 * kMiB);
}

TEST_F(HostMemoryTest, AServiceHasItsLimitInAGroupBelow) {
  write("sys/fs/cgroup/memory.max", std::to_string(12 * kGiB));
  write("sys/fs/cgroup/memory.current", std::to_string(1 * kGiB));
  write("proc/self/cgroup", "0::/system.slice/train.service\n");
  write("sys/fs/cgroup/system.slice/memory.max", "max\n");
  write("sys/fs/cgroup/system.slice/train.service/memory.max", std::to_string(6 * kGiB));
  write("sys/fs/cgroup/system.slice/train.service/memory.current", std::to_string(3 * kGiB));
  EXPECT_EQ(read_host_memory(root_).cgroup_limit_bytes, 6 * kGiB);
  EXPECT_EQ(read_host_memory(root_).budget_bytes(), 3 * kGiB - 512 * kMiB);
  // Pages of files that may be dropped are no use of it.
  write("sys/fs/cgroup/system.slice/train.service/memory.stat",
        "anon 5\ninactive_file " + std::to_string(1 * kGiB) + "\nactive_file 7\n");
  EXPECT_EQ(read_host_memory(root_).budget_bytes(), 4 * kGiB - 512 * kMiB);
  // The one above leaves less.
  write("sys/fs/cgroup/memory.current", std::to_string(10 * kGiB));
  EXPECT_EQ(read_host_memory(root_).cgroup_limit_bytes, 12 * kGiB);
  EXPECT_EQ(read_host_memory(root_).budget_bytes(), 2 * kGiB - 512 * kMiB);
}

TEST_F(HostMemoryTest, ABatchSystemsGroupOfTheOlderKind) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/slurm/job_7\n4:memory:/slurm/job_7\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  write("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", std::to_string(8 * kGiB));
  write("sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes", std::to_string(2 * kGiB));
  EXPECT_EQ(read_host_memory(root_).budget_bytes(), 6 * kGiB - 512 * kMiB);
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

TEST(ProcessStatus, PeakGrowsWithWhatWasTouched) {
  const int64_t before = process_status_bytes("VmHWM");
  EXPECT_GT(before, 0);
  {
    const std::vector<char> held(static_cast<size_t>(before + 32 * kMiB), 1);
    EXPECT_EQ(held.back(), 1);
  }
  EXPECT_GT(process_status_bytes("VmHWM"), before + 32 * kMiB);
  EXPECT_EQ(process_status_bytes("VmNone"), 0);
  EXPECT_EQ(process_status_bytes("VmHW"), 0);  // no part of a name
}

}  // namespace
}  // namespace ferry
