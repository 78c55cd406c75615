#pragma once
// The wear of an NVMe drive as it counts it itself, in the SMART log of its controller: for `ferry
// doctor` and `ferry plan`.
//
//   for (const std::string& drive : nvme_drives_of("/mnt/nvme"))
//     print(health_text(drive, read_drive_health(drive)));

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ferry {

struct DriveHealth {
  /** Its share of the writes that its maker expects it to last for; more than 100: past them. */
  int used_percent = 0;
  int spare_percent = 0, spare_percent_least = 0;  ///< blocks left to take the place of bad ones
  bool warns = false;                              ///< the drive itself: spare, heat, read-only
  int64_t read_bytes = 0, written_bytes = 0;       ///< by hosts, in all of its life
  int64_t n_media_errors = 0;                      ///< data that could not be read back

  /** A run that writes much should go elsewhere. */
  bool is_worn() const {
    return warns || used_percent >= 90 || spare_percent < spare_percent_least;
  }
};

/** The bytes of log page 02h, as the NVMe base specification lays them out. */
using SmartLog = std::array<std::byte, 512>;
DriveHealth parse_smart_log(const SmartLog& log);

/** "nvme0n1": the NVMe drives below the file system that holds `path`, several where a RAID or a
 * logical volume joins them. None: it is on no such drive. `root`: for tests. */
std::vector<std::string> nvme_drives_of(const std::filesystem::path& path,
                                        const std::filesystem::path& root = "/");
/** The same for the block device of these numbers. */
std::vector<std::string> nvme_drives_of(unsigned major,
                                        unsigned minor,
                                        const std::filesystem::path& root = "/");

/** Asks the drive; the kernel lets root, and since Linux 6.2 whoever may read its device. Throws
 * Error(machine) that says why not. */
DriveHealth read_drive_health(const std::string& drive);

/** "nvme0n1 counts 3 % of its life as used; 12.4 TB were written to it" */
std::string health_text(const std::string& drive, const DriveHealth& health);

}  // namespace ferry
