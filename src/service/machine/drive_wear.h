#pragma once
// The wear of the drives of nvme_path, as they count it themselves.

#include <string>
#include <vector>

#include "offload/nvme/drive_health.h"
#include "src/request/nvme.h"

namespace ferry::service {

struct DriveWear {
  struct Drive {
    std::string name;  ///< "nvme0n1"
    DriveHealth health;
  };
  std::vector<Drive> drives;
  std::string trouble;  ///< why some of it is not known, in one sentence; else empty
};

/** Asks the drives that these directories lie on, each once. Throws nothing. */
DriveWear read_drive_wear(const Directories& directories);

}  // namespace ferry::service
