#include "src/service/machine/drive_wear.h"

#include <fmt/format.h>

#include <set>

#include "src/base/error.h"

namespace ferry::service {

DriveWear read_drive_wear(const Directories& directories) {
  DriveWear wear;
  std::set<std::string> names;
  for (const std::filesystem::path& directory : directories) {
    const auto drives = nvme_drives_of(directory);
    names.insert(drives.begin(), drives.end());
    if (drives.empty() && wear.trouble.empty())
      wear.trouble = fmt::format(
          "'{}' is on no NVMe drive that this system shows: its wear is not "
          "known",
          directory.string());
  }
  for (const std::string& name : names) {
    try {
      wear.drives.push_back({name, read_drive_health(name)});
    } catch (const Error& error) {
      wear.trouble = error.what();
    }
  }
  return wear;
}

}  // namespace ferry::service
