#pragma once
// A machine that has nothing to say, and one for each fault that the doctor finds.

#include <functional>

#include "src/base/bytes.h"
#include "src/service/machine/diagnosis.h"

namespace ferry::service {

inline Facts healthy() {
  Facts facts;
  facts.host.n_threads = 8;
  facts.host.disk_total_bytes = 100 * kGiB;
  facts.host.disk_free_bytes = 50 * kGiB;
  facts.memory.total_bytes = 32 * kGiB;
  facts.memory.available_bytes = 30 * kGiB;
  facts.simd_level = "avx2";
  facts.trainer = "/usr/bin/ferry-trainer";
  facts.presets = {"minilm-classify"};
  facts.nvidia.has_library = true;
  facts.nvidia.driver_version = "580.65.06";
  facts.gpu_code = {.archs = {75, 80, 86}, .ptx_arch = 86};
  facts.nvidia.gpus = {{"RTX 2080 Ti", 11 * kGiB, 10 * kGiB, 75, 3, 16, false}};
  return facts;
}

/** The profile of the healthy machine, with nothing to say about it. */
inline MachineProfile measured_profile() {
  MachineProfile profile{.name = "a desktop"};
  profile.gpu =
      GpuProfile{.name = "RTX 2080 Ti",
                 .compute_capability = 75,
                 .memory_bytes = 11 * kGiB,
                 .pcie_generation = 3,
                 .pcie_width = 16,
                 .copies = {{kMiB, 6e9, 6e9, 5e9, 5e9}, {64 * kMiB, 12e9, 12e9, 11e9, 11e9}}};
  profile.host = {.updates = {{8, 1.3e9}}, .memory_bytes_per_s = 36e9, .dram_bytes_per_s = 40e9};
  profile.disk = {.write_bytes_per_s = 1e9, .read_bytes_per_s = 2e9};
  return profile;
}

/** The healthy machine with one fault, and words of what the doctor says. */
struct BadMachine {
  const char* name;
  std::function<void(Facts&)> change;
  Severity severity;
  const char* what;
  const char* cure;
};
/** What was measured has the fault. */
inline std::function<void(Facts&)> measured(void (*change)(MachineProfile&)) {
  return [change](Facts& facts) {
    facts.profile = measured_profile();
    change(*facts.profile);
  };
}
inline std::function<void(Facts&)> driver_trouble(int code) {
  return [code](Facts& facts) {
    facts.nvidia.trouble = "x";
    facts.nvidia.trouble_code = code;
  };
}
inline const BadMachine kBadMachines[] = {
    {"trainer", [](Facts& f) { f.trainer.reset(); }, Severity::error, "ferry-trainer",
     "scripts/setup"},
    {"wrong trainer",
     [](Facts& f) {
       f.trainer.reset();
       f.trainer_trouble = "names no program";
     },
     Severity::error, "names no program", "FERRY_TRAINER"},
    {"simd", [](Facts& f) { f.simd_trouble = "FERRY_SIMD = avx9"; }, Severity::error, "avx9",
     "unset"},
    {"scalar", [](Facts& f) { f.simd_level = "scalar"; }, Severity::warning, "without vectors",
     "AVX2"},
    {"presets", [](Facts& f) { f.presets.clear(); }, Severity::warning, "no presets", "presets/"},
    {"memory", [](Facts& f) { f.memory.available_bytes = kGiB; }, Severity::warning, "host memory",
     "end other"},
    {"cgroup", [](Facts& f) { f.memory.cgroup_limit_bytes = 2 * kGiB; }, Severity::warning,
     "host memory", "limit"},
    {"large cgroup", [](Facts& f) { f.memory.cgroup_limit_bytes = 16 * kGiB; }, Severity::note,
     "16.00 GiB of 32", "limit"},
    {"swap",
     [](Facts& f) {
       f.host.swap_total_bytes = 8 * kGiB;
       f.host.swap_free_bytes = 2 * kGiB;
     },
     Severity::note, "6.00 GiB are swapped", "end programs"},
    {"disk", [](Facts& f) { f.host.disk_free_bytes = kGiB; }, Severity::warning,
     "1.00 GiB are free", "output-dir"},
    {"wsl", [](Facts& f) { f.host.is_wsl = true; }, Severity::note, "WSL", ".wslconfig"},
    {"no driver",
     [](Facts& f) {
       f.nvidia = {};
       f.nvidia.n_pci_devices = 1;
     },
     Severity::warning, "no driver", "580"},
    {"no GPU", [](Facts& f) { f.nvidia = {}; }, Severity::note, "no NVIDIA GPU", ""},
    {"old driver", [](Facts& f) { f.nvidia.driver_version = "579.99"; }, Severity::warning,
     "too old", "580"},
    {"mismatch", driver_trouble(kNvmlVersionMismatch), Severity::warning, "does not answer",
     "restart"},
    {"not loaded", driver_trouble(kNvmlDriverNotLoaded), Severity::warning, "does not answer",
     "modprobe"},
    {"permission", driver_trouble(kNvmlNoPermission), Severity::warning, "does not answer",
     "/dev/nvidia"},
    {"old card", [](Facts& f) { f.nvidia.gpus[0].compute_capability = 61; }, Severity::warning,
     "6.1", "cannot"},
    {"no code for the card",
     [](Facts& f) {
       f.gpu_code = {.archs = {80, 90}, .ptx_arch = 90};
     },
     Severity::warning, "RTX 2080 Ti has compute capability 7.5, and this build holds",
     "-Dgpu_archs=75"},
    {"no CUDA in the build", [](Facts& f) { f.gpu_code = {}; }, Severity::warning,
     "this build has no CUDA", "run scripts/setup"},
    {"hidden", [](Facts& f) { f.hides_gpus = true; }, Severity::warning, "hides",
     "unset CUDA_VISIBLE"},
    {"empty", [](Facts& f) { f.nvidia.gpus.clear(); }, Severity::note, "sees no GPU", ""},
    {"memlock, not measured", [](Facts& f) { f.host.memlock_limit_bytes = 8 * kMiB; },
     Severity::note, "limited to 8.0 MiB", "ulimit -l"},
    {"memlock",
     [](Facts& f) {
       f.profile = measured_profile();
       f.profile->gpu->copies.clear();
       f.profile->gpu->pins_nothing = true;
       f.host.memlock_limit_bytes = 8 * kMiB;
     },
     Severity::warning, "pinning failed", "ulimit -l"},
    {"pinning", measured([](MachineProfile& p) {
       p.gpu->copies.clear();
       p.gpu->pins_nothing = true;
     }),
     Severity::warning, "could be pinned", "end other"},
    {"little pinned", measured([](MachineProfile& p) { p.gpu->pinned_bytes_max = 640 * kMiB; }),
     Severity::note, "pins 640.0 MiB of host memory at most", "memlock"},
    {"link", measured([](MachineProfile& p) {
       for (CopyRate& copy : p.gpu->copies)
         copy.h2d = copy.d2h = 6.3e9;
     }),
     Severity::warning, "reach 6.3 GB/s; PCIe 3 x16 gives 15.8", "slot"},
    {"display", [](Facts& f) { f.nvidia.gpus[0].drives_display = true; }, Severity::note,
     "drives the display", "--gpu-memory"},
    {"huge pages", [](Facts& f) { f.host.huge_pages = "never"; }, Severity::note, "huge pages",
     "echo madvise"},
    {"slow AdamW", measured([](MachineProfile& p) { p.host.memory_bytes_per_s = 20e9; }),
     Severity::warning, "AdamW moves 20.0 GB/s where memory gives 40.0", "FERRY_SIMD"},
    {"slow disk", measured([](MachineProfile& p) { p.disk.write_bytes_per_s = 120e6; }),
     Severity::warning, "writes 120 MB/s", "--output-dir"},
    {"another CPU", measured([](MachineProfile& p) { p.host.cpu = "an older one"; }),
     Severity::note, "of another machine than this one: a desktop", "ferry doctor"},
    {"another GPU", measured([](MachineProfile& p) { p.gpu->name = "RTX 3090"; }), Severity::note,
     "of another machine", "ferry doctor"},
    {"no GPU then", measured([](MachineProfile& p) { p.gpu.reset(); }), Severity::note,
     "of another machine", "ferry doctor"},
    {"not measured", [](Facts& f) { f.measure_trouble = "no figures"; }, Severity::warning,
     "could not be measured: no figures", "again"},
    {"worn drive",
     [](Facts& f) {
       f.wear.drives = {{"nvme0n1", {.used_percent = 3, .spare_percent = 100}},
                        {"nvme1n1", {.used_percent = 91, .spare_percent = 40}}};
     },
     Severity::warning, "nvme1n1 counts 91 % of its life as used", "smartctl"},
    {"unknown wear", [](Facts& f) { f.wear.trouble = "no NVMe drive"; }, Severity::note,
     "no NVMe drive", ""},
    {"not stored", [](Facts& f) { f.store_trouble = "read-only"; }, Severity::warning,
     "not be stored: read-only", "XDG_DATA_HOME"},
};

}  // namespace ferry::service
