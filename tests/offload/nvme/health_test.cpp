// The SMART log of a drive as its specification lays it out, and the way from a path to the drive.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <limits>

#include "offload/nvme/drive_health.h"
#include "src/base/error.h"
#include "tests/files/test_files.h"
#include "tests/offload/nvme/mounted.h"

namespace ferry::test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void put(SmartLog& log, size_t offset, std::initializer_list<int> bytes) {
  for (const int byte : bytes)
    log[offset++] = static_cast<std::byte>(byte);
}

TEST(DriveHealth, IsReadFromTheLogOfTheSpecification) {
  SmartLog log{};
  put(log, 0, {0, 0x3B, 0x01, 97, 10, 4});       // 315 K, spare 97 % of at least 10, 4 % used
  put(log, 32, {0x15, 0xCD, 0x5B, 0x07});        // 123,456,789 units read
  put(log, 48, {0x00, 0xE4, 0x0B, 0x54, 0x02});  // 10,000,000,000 written
  put(log, 160, {3});
  const DriveHealth health = parse_smart_log(log);
  EXPECT_EQ(health.used_percent, 4);
  EXPECT_EQ(health.spare_percent, 97);
  EXPECT_EQ(health.spare_percent_least, 10);
  EXPECT_EQ(health.read_bytes, 123'456'789 * int64_t{512'000});
  EXPECT_EQ(health.written_bytes, 10'000'000'000 * 512'000);
  EXPECT_EQ(health.n_media_errors, 3);
  EXPECT_FALSE(health.is_worn());
  EXPECT_EQ(
      health_text("nvme0n1", health),
      "nvme0n1 counts 4 % of its life as used; 5120.0 TB were written to it; 3 times it could "
      "not read its data back");
}

TEST(DriveHealth, KnowsAWornDriveAndCountersOfAnySize) {
  SmartLog log{};
  put(log, 3, {100, 10, 255});
  for (size_t i = 0; i < 16; ++i)
    put(log, 48 + i, {0xFF});
  put(log, 160 + 15, {1});
  const DriveHealth health = parse_smart_log(log);
  EXPECT_EQ(health.used_percent, 255);
  EXPECT_TRUE(health.is_worn());
  EXPECT_GT(health.written_bytes, std::numeric_limits<int64_t>::max() - 512'000);
  EXPECT_EQ(health.n_media_errors, std::numeric_limits<int64_t>::max());
  const auto is_worn = [](std::initializer_list<int> head) {
    SmartLog other{};
    put(other, 0, head);
    return parse_smart_log(other).is_worn();
  };
  EXPECT_FALSE(is_worn({0, 0, 0, 10, 10, 89}));
  EXPECT_TRUE(is_worn({0, 0, 0, 10, 10, 90}));
  EXPECT_TRUE(is_worn({0, 0, 0, 9, 10, 0}));
  EXPECT_TRUE(is_worn({4, 0, 0, 100, 10, 0}));
}

/** The tree that the kernel shows of two drives, one in partitions, and of what lies on them. */
class ShownDrives : public testing::Test {
 protected:
  fs::path device(const std::string& path, const std::string& numbers) {
    const fs::path made = root_ / ("sys/devices/" + path);
    fs::create_directories(made);
    fs::create_directories(root_ / "sys/dev/block");
    fs::create_symlink(made, root_ / ("sys/dev/block/" + numbers));
    return made;
  }
  void lies_on(const fs::path& upper, const fs::path& lower) {
    fs::create_directories(upper / "slaves");
    fs::create_symlink(lower, upper / "slaves" / lower.filename());
  }

  TempDir root_;
};

TEST_F(ShownDrives, AreFoundBelowPartitionsVolumesAndRaids) {
  device("pci0/nvme/nvme0/nvme0n1", "259:0");
  const fs::path part = device("pci0/nvme/nvme0/nvme0n1/nvme0n1p2", "259:2");
  std::ofstream(part / "partition") << "2\n";
  const fs::path other = device("pci1/nvme/nvme1/nvme1n1", "259:5");
  const fs::path raid = device("virtual/block/md0", "9:0");
  lies_on(raid, part);
  lies_on(raid, other);
  lies_on(device("virtual/block/dm-0", "253:0"), raid);
  device("pci2/virtio1/block/vda", "254:0");
  const auto found = [&](unsigned major, unsigned minor) {
    return nvme_drives_of(major, minor, root_.path());
  };
  EXPECT_THAT(found(259, 0), ElementsAre("nvme0n1"));
  EXPECT_THAT(found(259, 2), ElementsAre("nvme0n1"));
  EXPECT_THAT(found(9, 0), ElementsAre("nvme0n1", "nvme1n1"));
  EXPECT_THAT(found(253, 0), ElementsAre("nvme0n1", "nvme1n1"));
  EXPECT_THAT(found(254, 0), IsEmpty());
  EXPECT_THAT(found(7, 7), IsEmpty());
}

/** On the file systems that are here: their own numbers, and Btrfs's that are no device's. */
TEST_F(ShownDrives, AreFoundFromAPath) {
  struct stat here {};
  ASSERT_EQ(::stat(root_.path().c_str(), &here), 0);
  if (major(here.st_dev) != 0) {
    device("pci0/nvme/nvme0/nvme0n1",
           std::to_string(major(here.st_dev)) + ":" + std::to_string(minor(here.st_dev)));
    EXPECT_THAT(nvme_drives_of(root_.path(), root_.path()), ElementsAre("nvme0n1"));
  }
  EXPECT_THAT(nvme_drives_of("/proc"), IsEmpty());
  EXPECT_THAT(nvme_drives_of(root_ / "gone"), IsEmpty());

  const fs::path image = root_ / "image";
  if (!MountedImage::make(image, 128, "mkfs.btrfs")) GTEST_SKIP() << "mkfs.btrfs does not run here";
  MountedImage mounted(image, root_ / "btrfs");
  if (!mounted) GTEST_SKIP() << kNoMount;
  struct stat on_btrfs {};
  ASSERT_EQ(::stat(mounted.path().c_str(), &on_btrfs), 0);
  ASSERT_EQ(major(on_btrfs.st_dev), 0u);
  fs::path devices;
  for (const fs::directory_entry& shown : fs::directory_iterator("/sys/fs/btrfs"))
    if (fs::exists(shown.path() / "devices"))
      for (const fs::directory_entry& its : fs::directory_iterator(shown.path() / "devices"))
        if (read_file(its.path() / "loop/backing_file").starts_with(image.string()))
          devices = root_ / its.path().parent_path().relative_path().string();
  ASSERT_FALSE(devices.empty()) << "the kernel shows it";
  fs::create_directories(devices);
  fs::create_symlink(device("pci0/nvme/nvme7/nvme7n1", "259:7"), devices / "nvme7n1");
  EXPECT_THAT(nvme_drives_of(mounted.path(), root_.path()), ElementsAre("nvme7n1"));
}

TEST(DriveHealth, ADriveThatCannotBeAskedIsNamed) {
  try {
    read_drive_health("nvme99n9");
    FAIL() << "there is no such drive";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::machine);
    EXPECT_THAT(error.what(), HasSubstr("the SMART log of nvme99n9 cannot be read: No such file"));
  }
  // Another device knows no such command.
  try {
    read_drive_health("null");
    FAIL() << "it has no log";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Inappropriate ioctl"));
  }
}

}  // namespace
}  // namespace ferry::test
