#include "offload/nvme/drive_health.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/btrfs.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>

#include "offload/nvme/drive.h"
#include "src/base/error.h"
#include "src/base/unique_fd.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** Little-endian, 16 bytes; what an int64_t cannot hold counts as the most that it can. */
int64_t counter_at(const SmartLog& log, size_t offset) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  int64_t value = 0;
  for (size_t i = 16; i-- > 0;) {
    if (value > kMost >> 8) return kMost;
    value = value << 8 | std::to_integer<int64_t>(log[offset + i]);
  }
  return value;
}

/** Thousands of 512 bytes. */
int64_t data_units_at(const SmartLog& log, size_t offset) {
  constexpr int64_t kUnit_bytes = 512'000;
  return std::min(counter_at(log, offset), std::numeric_limits<int64_t>::max() / kUnit_bytes) *
         kUnit_bytes;
}

void add_drives_in(const fs::path& directory, std::vector<std::string>& drives);

/** Through what lies below it: a partition's disk, a volume's or a RAID's devices. */
void add_drives_below(const fs::path& device, std::vector<std::string>& drives) {
  std::error_code error;
  if (fs::exists(device / "partition", error))
    return add_drives_below(device.parent_path(), drives);
  const std::string name = device.filename().string();
  if (name.starts_with("nvme")) {
    if (std::ranges::find(drives, name) == drives.end()) drives.push_back(name);
    return;
  }
  add_drives_in(device / "slaves", drives);
}

/** Follows the links to devices in it. */
void add_drives_in(const fs::path& directory, std::vector<std::string>& drives) {
  std::error_code error;
  for (const fs::directory_entry& link : fs::directory_iterator(directory, error))
    if (const fs::path device = fs::canonical(link.path(), error); !error)
      add_drives_below(device, drives);
}

/** Btrfs shows numbers that belong to no device, and may have several. Empty: it is none. */
fs::path btrfs_devices_of(const fs::path& path, const fs::path& root) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  btrfs_ioctl_fs_info_args about{};
  if (!file || ::ioctl(file.get(), BTRFS_IOC_FS_INFO, &about) != 0) return {};
  return root / "sys/fs/btrfs" / uuid_text(about.fsid) / "devices";
}

[[noreturn]] void refuse(const std::string& drive, int code) {
  const bool is_right = code == EACCES || code == EPERM;
  throw Error(Fault::machine, "nvme.health",
              fmt::format("the SMART log of {} cannot be read: {}", drive,
                          std::generic_category().message(code)),
              is_right ? "root may read it: sudo ferry doctor --no-measure" : "");
}

}  // namespace

DriveHealth parse_smart_log(const SmartLog& log) {
  const auto byte = [&](size_t offset) { return std::to_integer<int>(log[offset]); };
  return {.used_percent = byte(5),
          .spare_percent = byte(3),
          .spare_percent_least = byte(4),
          .warns = byte(0) != 0,
          .read_bytes = data_units_at(log, 32),
          .written_bytes = data_units_at(log, 48),
          .n_media_errors = counter_at(log, 160)};
}

std::vector<std::string> nvme_drives_of(const fs::path& path, const fs::path& root) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return {};
  const fs::path several = btrfs_devices_of(path, root);
  if (several.empty()) return nvme_drives_of(major(found.st_dev), minor(found.st_dev), root);
  std::vector<std::string> drives;
  add_drives_in(several, drives);
  std::ranges::sort(drives);
  return drives;
}

std::vector<std::string> nvme_drives_of(unsigned major, unsigned minor, const fs::path& root) {
  std::error_code error;
  const fs::path device =
      fs::canonical(root / "sys/dev/block" / fmt::format("{}:{}", major, minor), error);
  std::vector<std::string> drives;
  if (!error) add_drives_below(device, drives);
  std::ranges::sort(drives);
  return drives;
}

DriveHealth read_drive_health(const std::string& drive) {
  const UniqueFd device(::open(("/dev/" + drive).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!device) refuse(drive, errno);
  SmartLog log{};
  nvme_admin_cmd command{};
  constexpr uint32_t kGetLogPage = 0x02, kSmart = 0x02, kEveryNamespace = 0xFFFFFFFF;
  command.opcode = kGetLogPage;
  command.nsid = kEveryNamespace;
  command.addr = reinterpret_cast<uintptr_t>(log.data());
  command.data_len = static_cast<uint32_t>(log.size());
  command.cdw10 = kSmart | static_cast<uint32_t>(log.size() / 4 - 1) << 16;  // words less one
  const int status = ::ioctl(device.get(), NVME_IOCTL_ADMIN_CMD, &command);
  if (status != 0) refuse(drive, status < 0 ? errno : EIO);  // above 0: the drive's own refusal
  return parse_smart_log(log);
}

std::string health_text(const std::string& drive, const DriveHealth& health) {
  std::string text =
      fmt::format("{} counts {} % of its life as used; {:.1f} TB were written to it", drive,
                  health.used_percent, static_cast<double>(health.written_bytes) / 1e12);
  if (health.n_media_errors > 0)
    text += fmt::format("; {} times it could not read its data back", health.n_media_errors);
  return text;
}

}  // namespace ferry
