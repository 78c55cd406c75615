#include "src/train/prepare/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/host_memory.h"
#include "src/base/process/threads.h"
#include "src/request/nvme.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/drive_rates.h"
#include "src/runs/store/store_place.h"
#include "src/runs/store/store_room.h"

namespace ferry {

namespace {

/** Probes the first GPU alone if it cannot be used. Throws Error(machine) if another one cannot. */
std::vector<CudaProbe> probe_gpus(const std::vector<int>& gpus) {
  std::vector<CudaProbe> probes = {probe_cuda(gpus.front())};
  if (!probes.front().usable) return probes;
  for (size_t i = 1; i < gpus.size(); ++i) {
    probes.push_back(probe_other_gpu(gpus[i]));
    if (!probes.back().usable)
      throw Error(Fault::machine, "device",
                  fmt::format("GPU {} cannot be used: {}", gpus[i], probes.back().why_not),
                  fmt::format("{}, or leave it out of gpus", probes.back().cure));
  }
  return probes;
}

/** Without the rates of drives. */
Machine detect_devices(const config::Config& config, const std::vector<int>& gpus) {
  Machine machine;
  machine.n_cores = n_usable_threads();
  machine.plan = plan_machine_here();
  machine.device_name = "CPU";
  machine.note = note_of_other_machine();
  const std::string& wish = config.text("device");
  if (wish == "cpu" || wish == "simulated") return machine;
  const std::vector<CudaProbe> probes = probe_gpus(gpus);
  const CudaProbe& probe = probes.front();
  if (!probe.usable) {
    if (wish == "cuda")
      throw Error(Fault::machine, "device", "device = cuda, but " + probe.why_not, probe.cure);
    if (probe.has_gpu)
      machine.note = fmt::format("on the CPU, because {} - {}", probe.why_not, probe.cure);
    return machine;
  }
  take_gpus(probes, gpus, machine);
  return machine;
}

}  // namespace

namespace {

/** Bytes that the store of a run that goes on has in each directory already. */
int64_t bytes_of_own_store(const config::Config& config) {
  const std::string& from = config.text("resume_from_checkpoint");
  if (from.empty()) return 0;
  const auto place = runs::store_place_of(runs::find_resume_point(from).run);
  return place ? place->n_bytes / std::ssize(place->files) : 0;
}

}  // namespace

void take_gpus(std::span<const CudaProbe> probes, std::span<const int> gpus, Machine& machine) {
  std::vector<GpuHere> here;
  for (const CudaProbe& probe : probes)
    here.push_back({.name = probe.gpu_name,
                    .compute_capability = probe.compute_capability,
                    .free_bytes = probe.free_bytes,
                    .taken_bytes = probe.total_bytes - probe.free_bytes});
  add_gpus(here, machine.plan);
  const CudaProbe& first = probes.front();
  machine.device_name = first.gpu_name;
  const auto other = std::ranges::find_if(
      probes, [&](const CudaProbe& its) { return its.gpu_name != first.gpu_name; });
  machine.has_unlike_gpus = other != probes.end();
  if (!machine.has_unlike_gpus) return;
  const auto least = std::ranges::min_element(probes, {}, &CudaProbe::free_bytes);
  machine.note += fmt::format(
      "{}the GPUs are of several models ({} and {}): the run is the same each time, but not that "
      "of GPUs of one model; GPU {} has the least memory free ({}), and a plan that splits the "
      "samples counts no more on each",
      machine.note.empty() ? "" : "; ", first.gpu_name, other->gpu_name,
      gpus[static_cast<size_t>(least - probes.begin())], format_bytes(least->free_bytes));
}

Machine detect_machine(const config::Config& config, const std::vector<int>& gpus) {
  const NvmeSettings nvme = nvme_settings(config);
  const Directories& drives = nvme.directories;
  ensure_nvme_rates(drives, [](const std::string& line) { log_line("nvme: " + line); });
  Machine machine = detect_devices(config, gpus);
  take_nvme(machine.plan, drives);
  if (!drives.empty())
    machine.plan.nvme_budget_bytes = runs::store_budget_bytes(nvme, bytes_of_own_store(config));
  return machine;
}

int64_t peak_process_bytes() {
  return process_status_bytes("VmHWM");
}
int64_t process_bytes() {
  // The second of its numbers, in pages; after every step /proc/self/status would be much to write
  // and read.
  int64_t n_all = 0, n_resident = 0;
  std::ifstream("/proc/self/statm") >> n_all >> n_resident;
  return n_resident * sysconf(_SC_PAGESIZE);
}

}  // namespace ferry
