#include "src/runs/store/drive_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "offload/nvme/disk_rates.h"
#include "offload/nvme/drive.h"
#include "offload/nvme/stripes.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/runs/logs/wall_time.h"
#include "src/runs/store/store_room.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFile_bytes = 2 * kGiB;
/** It is as much as a run's slots: smaller memory stays in the processor's caches, and a virtual
 * disk copies faster from there. */
constexpr int64_t kWindow_bytes = 512 * kMiB;
constexpr int kFlushes = 5;

struct Asking {
  int64_t request_bytes;
  int depth;  ///< on each drive
};
/** The first is what is taken where none is better. */
constexpr Asking kAskings[] = {{kMiB, 16}, {kMiB / 4, 32}, {kMiB / 2, 32},
                               {kMiB, 32}, {2 * kMiB, 8},  {4 * kMiB, 8}};
/** Less is what one measurement differs from the next by. */
constexpr double kGain_least = 1.08;

/** True where each directory has a drive of its own among `drives`. */
bool are_on(const Directories& directories, std::vector<std::string> drives) {
  if (directories.size() != drives.size()) return false;
  return std::ranges::all_of(directories, [&](const fs::path& directory) {
    const auto drive = std::ranges::find_if(
        drives, [&](const std::string& id) { return is_on_drive(directory, id); });
    if (drive == drives.end()) return false;
    drives.erase(drive);
    return true;
  });
}

double rounded(double rate) {
  return std::stod(fmt::format("{:.4g}", rate));
}

/** The drives are left with the fastest for what a step does. Each is tried twice, for another
 * program may have been there once. */
Asking choose_asking(ScratchDisk& scratch, double seconds) {
  constexpr int kRounds = 2;
  const double each_s = seconds / (kRounds * std::size(kAskings));
  std::array<double, std::size(kAskings)> rates{};
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < rates.size(); ++i) {
      scratch.use(kAskings[i].request_bytes, kAskings[i].depth);
      rates[i] = std::max(rates[i], scratch.rate_of(DiskPattern::mixed, each_s));
    }
  const auto best = static_cast<size_t>(std::ranges::max_element(rates) - rates.begin());
  const Asking chosen = kAskings[rates[best] >= kGain_least * rates[0] ? best : 0];
  scratch.use(chosen.request_bytes, chosen.depth);
  return chosen;
}

}  // namespace

const NvmeProfile* find_nvme(const MachineProfile& profile, const Directories& directories) {
  const auto found = std::ranges::find_if(profile.nvme, [&](const NvmeProfile& nvme) {
    return nvme.drives.empty() || are_on(directories, nvme.drives);
  });
  return found == profile.nvme.end() ? nullptr : &*found;
}

void take_nvme(PlanMachine& machine, const Directories& directories) {
  if (!machine.profile) return;
  const NvmeProfile* const found =
      directories.empty() ? nullptr : find_nvme(*machine.profile, directories);
  machine.profile->nvme = found ? std::vector{*found} : std::vector<NvmeProfile>{};
}

void put_nvme(MachineProfile& profile, NvmeProfile rates) {
  std::ranges::sort(rates.drives);
  std::erase_if(profile.nvme, [&](const NvmeProfile& old) { return old.drives == rates.drives; });
  profile.nvme.push_back(std::move(rates));
}

NvmeProfile measure_nvme(const Directories& directories, double seconds) {
  runs::check_store_directories(directories);
  const runs::DirectoryLocks locks = runs::lock_store_directories(directories);
  NvmeProfile rates{.source = fmt::format("measured {}", runs::now_in_words())};
  const double each_s = seconds / 5;
  ScratchDisk scratch(directories, kFile_bytes * std::ssize(directories), {}, each_s,
                      kWindow_bytes);
  const Asking asking = choose_asking(scratch, each_s);
  rates.request_bytes = asking.request_bytes;
  rates.depth = asking.depth;
  rates.read_bytes_per_s = rounded(scratch.rate_of(DiskPattern::read, each_s));
  rates.write_bytes_per_s = rounded(scratch.rate_of(DiskPattern::write, each_s));
  // Half of what passes is read, the other half written.
  rates.mixed_bytes_per_s = rounded(scratch.rate_of(DiskPattern::mixed, each_s) / 2);
  rates.flush_s = rounded(scratch.flush_s(kFlushes));
  for (const fs::path& directory : directories) {
    rates.drives.push_back(drive_id_of(directory));
    rates.directories.push_back(fs::absolute(directory).lexically_normal().string());
  }
  return rates;
}

DiskOptions disk_options_of(const NvmeProfile* rates) {
  DiskOptions options;
  constexpr int64_t kRequest_bytes_max = 64 * kMiB;
  constexpr int kDepth_max = 256;
  if (!rates || rates->request_bytes <= 0 || rates->request_bytes > kRequest_bytes_max ||
      rates->request_bytes % kDiskAlignment_bytes != 0 || rates->depth < 1 ||
      rates->depth > kDepth_max)
    return options;
  options.request_bytes = rates->request_bytes;
  options.depth = rates->depth;
  return options;
}

void ensure_nvme_rates(const Directories& directories,
                       const std::function<void(const std::string&)>& tell,
                       double seconds) {
  if (directories.empty()) return;
  runs::check_store_directories(directories);
  const auto before = profile_of_this_machine("");
  if (!before || find_nvme(*before, directories)) return;
  tell(fmt::format("measuring what the drives of nvme_path give, some {:.0f} s; kept for later",
                   seconds));
  const NvmeProfile rates = measure_nvme(directories, seconds);
  try {
    change_machine_profile([&] {
      auto profile = profile_of_this_machine("");  // anew: others store, too
      if (profile) put_nvme(*profile, rates);
      return profile;
    });
  } catch (const Error& error) {
    tell(fmt::format("their rates could not be stored: {}", error.what()));
  }
}

}  // namespace ferry
