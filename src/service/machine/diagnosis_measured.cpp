// The faults that only show in figures.

#include <fmt/format.h>

#include <algorithm>

#include "src/base/bytes.h"
#include "src/service/machine/findings.h"

namespace ferry::service {

namespace {

constexpr double kGb = 1e9;
/** Below this share of what a link or DRAM gives, something is wrong. */
constexpr double kLinkShare_least = 0.5, kUpdateShare_least = 0.6;
/** An old SATA drive; checkpoints of large models take minutes below it. */
constexpr double kDisk_bytes_per_s_least = 300e6;

/** The rate of a link of this generation each way, less its line code; 0: not known. */
double link_bytes_per_s(int generation, int width) {
  constexpr double kLane_bytes_per_s[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
  if (generation < 1 || generation > 6) return 0;
  return kLane_bytes_per_s[generation] * width;
}

/** A profile that was kept may be older than the machine. */
void diagnose_age(const Facts& facts, Findings& findings) {
  const MachineProfile& profile = *facts.profile;
  const auto& gpus = facts.nvidia.gpus;
  const bool has_its_gpu =
      gpus.empty() ? !profile.gpu
                   : profile.gpu && std::any_of(gpus.begin(), gpus.end(), [&](const Gpu& gpu) {
                       return gpu.name == profile.gpu->name;
                     });
  if (facts.is_measured_now || (has_its_gpu && profile.host.cpu == facts.host.cpu)) return;
  findings.add(Severity::note,
               fmt::format("the figures are of another machine than this one: {}", profile.name),
               "measure this one: `ferry doctor`", Mend::measure);
}

void diagnose_pinning(const Facts& facts, Findings& findings) {
  if (facts.nvidia.gpus.empty()) return;
  const auto& limit = facts.host.memlock_limit_bytes;
  const bool is_limited = limit && *limit < facts.memory.budget_bytes();
  const bool is_measured = facts.profile && facts.profile->gpu;
  if (is_measured && facts.profile->gpu->pinned_bytes_max > 0)
    findings.add(Severity::note,
                 fmt::format("the system pins {} of host memory at most; copies of more go through "
                             "a ring of pinned slots, which takes longer",
                             format_bytes(facts.profile->gpu->pinned_bytes_max)),
                 facts.host.is_wsl
                     ? "raise memory= in %UserProfile%\\.wslconfig, then wsl --shutdown"
                     : "raise the memlock limit: `ulimit -l unlimited`, or --ulimit memlock=-1 of "
                       "the container");
  // Many drivers do not count what they pin against the limit: then it is none.
  if (is_measured && !facts.profile->gpu->pins_nothing) return;
  if (is_limited)
    findings.add(is_measured ? Severity::warning : Severity::note,
                 fmt::format("locked memory is limited to {}; a run pins up to {}{}",
                             format_bytes(*limit), format_bytes(facts.memory.budget_bytes()),
                             is_measured ? ", and pinning failed here" : ""),
                 "raise it: `ulimit -l unlimited`, memlock in /etc/security/limits.conf, or "
                 "--ulimit memlock=-1 of the container");
  else if (is_measured)
    findings.add(Severity::warning, "no host memory could be pinned for copies to the GPU",
                 facts.host.is_wsl
                     ? "WSL pins only a part of its memory: raise memory= in "
                       "%UserProfile%\\.wslconfig, then wsl --shutdown"
                     : "end other programs that hold much memory, then `ferry doctor` again",
                 facts.host.is_wsl ? Mend::none : Mend::measure);
}

void diagnose_link(const GpuProfile& gpu, Findings& findings) {
  const double limit = link_bytes_per_s(gpu.pcie_generation, gpu.pcie_width);
  double most = 0;
  for (const CopyRate& copy : gpu.copies)
    most = std::max({most, copy.h2d, copy.d2h});
  if (limit <= 0 || most <= 0 || most >= kLinkShare_least * limit) return;
  findings.add(
      Severity::warning,
      fmt::format("copies to and from {} reach {:.1f} GB/s; PCIe {} x{} gives {:.1f}", gpu.name,
                  most / kGb, gpu.pcie_generation, gpu.pcie_width, limit / kGb),
      "end what else uses the card and measure again; else put the card into the slot that belongs "
      "to the processor, leave out riser cables, and look at the slot's generation in the BIOS",
      Mend::measure);
}

void diagnose_memory(const Facts& facts, Findings& findings) {
  const HostProfile& host = facts.profile->host;
  if (host.dram_bytes_per_s <= 0 || host.memory_bytes_per_s <= 0 ||
      host.memory_bytes_per_s >= kUpdateShare_least * host.dram_bytes_per_s)
    return;
  findings.add(Severity::warning,
               fmt::format("AdamW moves {:.1f} GB/s where memory gives {:.1f}",
                           host.memory_bytes_per_s / kGb, host.dram_bytes_per_s / kGb),
               "end what else computes and measure again; unset FERRY_SIMD if you set it",
               Mend::measure);
}

void diagnose_disk(const DiskProfile& disk, Findings& findings) {
  if (disk.write_bytes_per_s <= 0 || disk.write_bytes_per_s >= kDisk_bytes_per_s_least) return;
  findings.add(Severity::warning,
               fmt::format("the disk here writes {:.0f} MB/s: checkpoints take long",
                           disk.write_bytes_per_s / 1e6),
               "give an --output-dir on a faster disk, or a longer --save-steps",
               Mend::runs_directory);
}

void diagnose_wear(const DriveWear& wear, Findings& findings) {
  for (const auto& [name, health] : wear.drives)
    if (health.is_worn())
      findings.add(
          Severity::warning,
          fmt::format("{}; {} % of its spare blocks are left{}", health_text(name, health),
                      health.spare_percent, health.warns ? ", and it warns of a failure" : ""),
          "run on another drive, and look at it: smartctl -a");
  if (!wear.trouble.empty()) findings.add(Severity::note, wear.trouble);
}

}  // namespace

void diagnose_measured(const Facts& facts, Findings& findings) {
  diagnose_pinning(facts, findings);
  for (const Gpu& gpu : facts.nvidia.gpus)
    if (gpu.drives_display)
      findings.add(Severity::note,
                   fmt::format("{} drives the display: what the desktop holds of its memory is not "
                               "free, and may grow during a run",
                               gpu.name),
                   "let the processor's own graphics drive it, or leave the desktop more with "
                   "--gpu-memory");
  if (facts.host.huge_pages == "never")
    findings.add(Severity::note,
                 "transparent huge pages are off: AdamW and pinning are slower on small pages",
                 "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
  if (!facts.measure_trouble.empty())
    findings.add(Severity::warning,
                 fmt::format("this machine could not be measured: {}", facts.measure_trouble),
                 "what it says above is the reason; then `ferry doctor` again", Mend::measure);
  if (!facts.nvme_trouble.empty())
    findings.add(
        Severity::warning,
        fmt::format("the drives of nvme_path could not be measured: {}", facts.nvme_trouble),
        "a run cannot use them either before that is mended");
  diagnose_wear(facts.wear, findings);
  if (!facts.store_trouble.empty())
    findings.add(Severity::warning,
                 fmt::format("the profile could not be stored: {}", facts.store_trouble),
                 "set XDG_DATA_HOME to a directory that can be written");
  if (!facts.profile) return;
  diagnose_age(facts, findings);
  if (facts.profile->gpu) diagnose_link(*facts.profile->gpu, findings);
  diagnose_memory(facts, findings);
  diagnose_disk(facts.profile->disk, findings);
}

}  // namespace ferry::service
