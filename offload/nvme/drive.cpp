#include "offload/nvme/drive.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/unique_fd.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

/** The kernel's struct fsuuid2 and FS_IOC_GETFSUUID, newer than Debian 12's headers. */
struct FileSystemUuid {
  uint8_t n_bytes;
  std::array<uint8_t, 16> bytes;
};
constexpr unsigned long kGetUuid = _IOR(0x15, 0, FileSystemUuid);

/** Read-only to the last, so that any directory that can be listed will do. Empty where the kernel
 * (before 6.9) or the file system does not tell. */
std::string uuid_by_kernel(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  FileSystemUuid uuid{};
  if (!file || ::ioctl(file.get(), kGetUuid, &uuid) != 0) return {};
  const auto& b = uuid.bytes;
  if (uuid.n_bytes != b.size() || std::all_of(b.begin(), b.end(), [](auto x) { return x == 0; }))
    return {};
  return uuid_text(b);
}

/** The link that udev made for the device; empty where there is none. */
std::string uuid_by_link(const fs::path& path) {
  struct stat wanted {};
  if (::stat(path.c_str(), &wanted) != 0) return {};
  std::error_code error;
  for (const auto& link : fs::directory_iterator("/dev/disk/by-uuid", error)) {
    struct stat device {};
    if (::stat(link.path().c_str(), &device) == 0 && device.st_rdev == wanted.st_dev)
      return link.path().filename().string();
  }
  return {};
}

[[noreturn]] void refuse_path(const fs::path& path, int code) {
  throw Error(Fault::machine, "nvme.open",
              fmt::format("'{}' cannot be looked at: {}", path.string(),
                          std::generic_category().message(code)),
              "connect and mount the drive, or name another directory");
}

struct statfs look_at(const fs::path& path) {
  struct statfs found {};
  if (::statfs(path.c_str(), &found) != 0) refuse_path(path, errno);
  return found;
}

struct Kind {
  uint32_t magic;
  std::string_view name;
};
// The numbers that older headers lack are fixed by their projects.
constexpr Kind kNetwork[] = {
    {NFS_SUPER_MAGIC, "NFS"},   {SMB_SUPER_MAGIC, "SMB"}, {0xFF534D42, "SMB"},
    {0xFE534D42, "SMB"},        {AFS_SUPER_MAGIC, "AFS"}, {AFS_FS_MAGIC, "AFS"},
    {CODA_SUPER_MAGIC, "Coda"}, {0x00C36400, "Ceph"},     {V9FS_MAGIC, "9P"},
    {0x0BD00BD0, "Lustre"},     {0x47504653, "GPFS"},     {0x19830326, "BeeGFS"},
};
/** File systems that the kernel makes up: none has room for a file. */
constexpr Kind kMadeUp[] = {
    {PROC_SUPER_MAGIC, "proc"},     {SYSFS_MAGIC, "sysfs"},
    {CGROUP_SUPER_MAGIC, "cgroup"}, {CGROUP2_SUPER_MAGIC, "cgroup"},
    {DEVPTS_SUPER_MAGIC, "devpts"}, {DEBUGFS_MAGIC, "debugfs"},
    {TRACEFS_MAGIC, "tracefs"},     {SECURITYFS_MAGIC, "securityfs"},
    {BPF_FS_MAGIC, "bpf"},          {0x62656570, "configfs"},
    {EFIVARFS_MAGIC, "efivarfs"},   {HUGETLBFS_MAGIC, "hugetlbfs"},
    {0x19800202, "mqueue"},
};
constexpr uint32_t kMemory[] = {TMPFS_MAGIC, RAMFS_MAGIC};

}  // namespace

std::string uuid_text(std::span<const uint8_t, 16> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
  return text;
}

std::string drive_id_of(const fs::path& path) {
  const struct statfs found = look_at(path);
  std::array<uint32_t, 2> number{};
  static_assert(sizeof found.f_fsid == sizeof number);
  std::memcpy(number.data(), &found.f_fsid, sizeof number);
  std::string uuid = uuid_by_kernel(path);
  if (uuid.empty()) uuid = uuid_by_link(path);
  return fmt::format("{}/{:x}-{:08x}{:08x}", uuid, static_cast<uint32_t>(found.f_type), number[0],
                     number[1]);
}

bool is_on_drive(const fs::path& path, std::string_view id) {
  const std::string here = drive_id_of(path);
  const auto uuid_of = [](std::string_view text) { return text.substr(0, text.find('/')); };
  const bool have_both = !uuid_of(here).empty() && !uuid_of(id).empty();
  return have_both ? uuid_of(here) == uuid_of(id)
                   : here.substr(here.find('/')) == id.substr(std::min(id.find('/'), id.size()));
}

std::string_view network_of(uint32_t magic) {
  for (const Kind& kind : kNetwork)
    if (magic == kind.magic) return kind.name;
  return {};
}

void check_file_system(const fs::path& directory) {
  const auto magic = static_cast<uint32_t>(look_at(directory).f_type);
  if (const std::string_view network = network_of(magic); !network.empty())
    throw Error(Fault::usage, "nvme.open",
                fmt::format("'{}' lies on another machine ({})", directory.string(), network),
                "name a directory on a drive of this machine, best an NVMe SSD");
  for (const Kind& kind : kMadeUp)
    if (magic == kind.magic)
      throw Error(Fault::usage, "nvme.open",
                  fmt::format("'{}' is on no drive: the kernel makes its files up ({})",
                              directory.string(), kind.name),
                  "name a directory on an NVMe SSD");
  if (magic == FUSE_SUPER_MAGIC)
    log_line(
        fmt::format("nvme: '{}' is served by a program (FUSE): whether its bytes survive a "
                    "power cut is that program's matter",
                    directory.string()));
  for (const uint32_t memory : kMemory)
    if (magic == memory)
      log_line(
          fmt::format("nvme: '{}' is host memory (tmpfs) and no drive: it saves no memory, and "
                      "its bytes go with the power",
                      directory.string()));
}

}  // namespace ferry
