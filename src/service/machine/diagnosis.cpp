#include "src/service/machine/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/base/bytes.h"
#include "src/service/machine/findings.h"

namespace ferry::service {

namespace {

/** LibTorch, a small model and its states want about this much. */
constexpr int64_t kHostMemoryLittle_bytes = 3 * kGiB;
/** A run's directory of a small model, with room for the file beside it while it is written. */
constexpr int64_t kDiskLittle_bytes = 2 * kGiB;

constexpr std::string_view kOnCpu = "training runs on the CPU until then";

void diagnose_program(const Facts& facts, Findings& findings) {
  if (!facts.trainer)
    findings.add(
        Severity::error,
        facts.trainer_trouble.empty() ? "ferry-trainer, the half that trains, is not beside ferry"
                                      : facts.trainer_trouble,
        "run scripts/setup and build again (-Dtrainer=true), or set FERRY_TRAINER to its path");
  if (!facts.simd_trouble.empty())
    findings.add(Severity::error, facts.simd_trouble, "unset FERRY_SIMD");
  else if (facts.simd_level == "scalar")
    findings.add(
        Severity::warning, "the CPU kernels run without vectors (scalar)",
        "a CPU with AVX2 updates parameters several times faster; unset FERRY_SIMD if you set it");
  if (facts.presets.empty())
    findings.add(Severity::warning, "no presets were found",
                 "the folder presets/ belongs beside the source tree");
}

void diagnose_host(const Facts& facts, Findings& findings) {
  const Host& host = facts.host;
  const HostMemory& memory = facts.memory;
  const int64_t budget_bytes = memory.budget_bytes();
  if (budget_bytes < kHostMemoryLittle_bytes)
    findings.add(Severity::warning,
                 fmt::format("only {} of host memory may be used; small models need about {}",
                             format_bytes(budget_bytes), format_bytes(kHostMemoryLittle_bytes)),
                 memory.cgroup_limit_bytes && *memory.cgroup_limit_bytes < memory.total_bytes
                     ? "raise the memory limit of the container or service, or end other programs"
                     : "end other programs, or add memory");
  else if (memory.cgroup_limit_bytes && *memory.cgroup_limit_bytes < memory.total_bytes)
    findings.add(
        Severity::note,
        fmt::format("a cgroup limits memory to {} of {}", format_bytes(*memory.cgroup_limit_bytes),
                    format_bytes(memory.total_bytes)),
        "raise the limit of the container or service to use more");
  if (const int64_t swapped_bytes = host.swap_total_bytes - host.swap_free_bytes;
      swapped_bytes > kGiB)
    findings.add(Severity::note,
                 fmt::format("{} are swapped out: memory was short", format_bytes(swapped_bytes)),
                 "end programs that hold much memory before a run");
  if (host.disk_total_bytes > 0 && host.disk_free_bytes < kDiskLittle_bytes)
    findings.add(Severity::warning,
                 fmt::format("only {} are free on the disk of the current directory",
                             format_bytes(host.disk_free_bytes)),
                 "free some space, or give an --output-dir on another disk", Mend::runs_directory);
  if (host.is_wsl)
    findings.add(Severity::note,
                 "this is WSL: Windows keeps back half of the memory and limits what can be pinned",
                 "raise memory= in %UserProfile%\\.wslconfig, then wsl --shutdown");
}

/** Finds the reasons for which training would refuse the GPUs. */
void diagnose_gpus(const Facts& facts, const std::string& update, Findings& findings) {
  std::set<std::string> said;  // an old driver is one for all cards
  std::vector<Gpu> gpus = facts.nvidia.gpus;
  const bool sees_none = gpus.empty();
  if (sees_none) gpus.emplace_back();  // it may be too old for the card to be seen
  for (const Gpu& gpu : gpus) {
    const auto refusal = refusal_of(facts_of(facts.nvidia, gpu), facts.gpu_code);
    if (!refusal || !said.insert(refusal->what).second) continue;
    const bool is_driver = refusal->of == GpuRefusal::Of::driver;
    if (sees_none && !is_driver) continue;
    findings.add(Severity::warning, refusal->what,
                 fmt::format("{}; {}", is_driver ? update : refusal->cure, kOnCpu));
  }
}

void diagnose_driver(const Facts& facts, Findings& findings) {
  const Nvidia& nvidia = facts.nvidia;
  const std::string update = facts.host.is_wsl
                                 ? "update the NVIDIA driver in Windows to 580 or newer"
                                 : "install driver 580 or newer: the distribution's package "
                                   "(nvidia-driver), or nvidia.com/drivers";
  if (!nvidia.has_library) {
    if (nvidia.n_pci_devices > 0)
      findings.add(Severity::warning, "there is an NVIDIA GPU, but no driver",
                   fmt::format("{}; {}", update, kOnCpu));
    else
      findings.add(Severity::note, "no NVIDIA GPU: training runs on the CPU");
    return;
  }
  if (!nvidia.trouble.empty()) {
    std::string cure = "nvidia-smi should say the same; reinstall the driver";
    if (nvidia.trouble_code == kNvmlVersionMismatch)
      cure = "the driver was updated since the machine started: restart it";
    if (nvidia.trouble_code == kNvmlDriverNotLoaded)
      cure = "load it (modprobe nvidia), or restart; in a container start it with --gpus all";
    if (nvidia.trouble_code == kNvmlNoPermission) cure = "this user may not open /dev/nvidia*";
    findings.add(Severity::warning,
                 fmt::format("the NVIDIA driver does not answer: {}", nvidia.trouble),
                 fmt::format("{}; {}", cure, kOnCpu));
    return;
  }
  if (nvidia.gpus.empty())
    findings.add(Severity::note, "the NVIDIA driver sees no GPU: training runs on the CPU");
  diagnose_gpus(facts, update, findings);
  if (facts.hides_gpus && !nvidia.gpus.empty())
    findings.add(Severity::warning, "CUDA_VISIBLE_DEVICES hides every GPU",
                 fmt::format("unset CUDA_VISIBLE_DEVICES; {}", kOnCpu));
}

}  // namespace

std::vector<Finding> diagnose(const Facts& facts) {
  Findings findings;
  diagnose_program(facts, findings);
  diagnose_driver(facts, findings);
  diagnose_host(facts, findings);
  diagnose_measured(facts, findings);
  std::stable_sort(findings.list.begin(), findings.list.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings.list;
}

}  // namespace ferry::service
