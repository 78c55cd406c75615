#pragma once
// The rates of a run's drives: found in a machine's profile by the drives that its directories lie
// on now, or measured. `ferry doctor`, `ferry plan` and training call it.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "offload/nvme/open_disk.h"
#include "src/request/nvme.h"
#include "src/request/run_plan.h"

namespace ferry {

/** The rates of the drives that these directories lie on, in any order. A profile of a machine that
 * is not here names no drives: its rates stand for any, and nobody looks at the directories. Null
 * where the profile has none; Error(machine) where a directory is missing. */
const NvmeProfile* find_nvme(const MachineProfile& profile, const Directories& directories);

/** Leaves a plan's machine the rates of these drives alone, or none where they are not known. */
void take_nvme(PlanMachine& machine, const Directories& directories);

/** Adds rates, in place of those of the same drives. */
void put_nvme(MachineProfile& profile, NvmeProfile rates);

/** How a run asks the drives: in requests of the size and number that was the fastest, or as
 * DiskOptions are by themselves where none were tried or the figures are no such. */
DiskOptions disk_options_of(const NvmeProfile* rates);

inline constexpr double kNvmeMeasured_s = 6;

/** The rates of files on the drives, in about so many seconds; none of them stays. Up to 2 GiB are
 * written to each drive. Throws as check_store_directories() and lock_store_directories(), and
 * Error(does_not_fit) where there is no room. */
NvmeProfile measure_nvme(const Directories& directories, double seconds);

/** Where the stored profile of this machine has no rates of these drives, measures and stores them,
 * and tells of it. Without a profile nobody needs them: no time is known then. Throws as
 * measure_nvme(); where directories will not do for a run also if there is nothing to measure. */
void ensure_nvme_rates(const Directories& directories,
                       const std::function<void(const std::string& line)>& tell,
                       double seconds = kNvmeMeasured_s);

}  // namespace ferry
