#include "src/service/plan/plan_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/request/nvme.h"
#include "src/request/ranks.h"
#include "src/runs/store/drive_rates.h"
#include "src/runs/store/store_room.h"

namespace ferry::service {
namespace {

/** Where the settings want a GPU and none is here to ask: an Ampere card whose context takes this
 * much. */
constexpr int kAssumedCapability = 80;
constexpr int64_t kContext_bytes = 512 * kMiB;

/** As measured, where it was. */
int64_t context_bytes_of(const Gpu& gpu) {
  const auto profile = profile_of_this_machine(gpu.name);
  const bool is_known = profile && profile->gpu && profile->gpu->context_bytes > 0;
  return is_known ? profile->gpu->context_bytes : kContext_bytes;
}

/** The GPUs of the named machine that the setting gpus means. A number of them beyond those that a
 * host has means several such hosts. */
MachineProfile with_planned_gpus(const MachineProfile& profile, const config::Config& config) {
  if (!profile.has_unlike_gpus()) return profile;
  const RunRanks ranks = ranks_of(config);
  const int n_there = profile.n_gpus();
  const auto refuse = [&](const std::string& why) {
    throw Error(Fault::usage, "config.gpus", why,
                fmt::format("the machine '{}' has {} GPUs, which are counted from 0: name some of "
                            "them, or a number of them; with several hosts a multiple of {}",
                            profile.name, n_there, n_there));
  };
  std::vector<int> gpus = ranks.gpus;
  if (!gpus.empty() && std::ranges::max(gpus) >= n_there)
    refuse(fmt::format("there is no GPU {}", std::ranges::max(gpus)));
  if (gpus.empty() && ranks.local_world > n_there && ranks.local_world % n_there != 0)
    refuse(fmt::format("{} GPUs are no whole number of hosts", ranks.local_world));
  if (gpus.empty()) {
    gpus.resize(static_cast<size_t>(std::min(ranks.local_world, n_there)));
    std::iota(gpus.begin(), gpus.end(), 0);
  }
  return with_gpus(profile, gpus);
}

PlannedMachine known_machine(const config::Config& config, const std::string& name) {
  MachineProfile profile = with_planned_gpus(find_machines(name), config);
  PlannedMachine planned = {.name = fmt::format("{}, by its profile{}", profile.name,
                                                name.find(',') == std::string::npos ? "" : "s")};
  const bool is_card = profile.host.memory_bytes == 0;  // of `ferry bench card`
  if (is_card) {
    if (auto own = profile_of_this_machine("")) {
      profile.host = own->host;
      profile.nvme = own->nvme;
    }
    planned.name += ", in this machine";
  }
  if (config.text("device") == "cpu") {
    profile.gpu.reset();
    profile.other_gpus.clear();
  }
  planned.machine = machine_of(profile);
  if (is_card) planned.machine.host_budget_bytes = read_host_memory().budget_bytes();
  return planned;
}

/** The driver counts a context once the trainer has one. */
GpuHere gpu_here(const Gpu& gpu) {
  const int64_t context_bytes = context_bytes_of(gpu);
  return {.name = gpu.name,
          .compute_capability = gpu.compute_capability,
          .free_bytes = gpu.memory_free_bytes - context_bytes,
          .taken_bytes = gpu.memory_total_bytes - gpu.memory_free_bytes + context_bytes};
}

/** The GPUs of the run's ranks on this host, as far as they are here. */
void add_gpus_here(const config::Config& config, const Nvidia& nvidia, PlannedMachine& planned) {
  const std::vector<const Gpu*> visible = visible_gpus(nvidia);
  const RunRanks ranks = ranks_of(config);
  std::vector<GpuHere> gpus;
  for (int rank = 0; rank < ranks.local_world; ++rank)
    if (const auto index = static_cast<size_t>(ranks.gpu_of(rank)); index < visible.size())
      gpus.push_back(gpu_here(*visible[index]));
  // A plan for more GPUs than are here takes all of them to be as the first one.
  if (std::ssize(gpus) < ranks.local_world) gpus = {gpu_here(*visible.front())};
  add_gpus(gpus, planned.machine);
  planned.name = gpus.front().name;
}

/** A GPU that is not here: all that is known of it is its memory. */
void add_assumed_gpu(int64_t memory_bytes, PlannedMachine& planned) {
  PlanMachine& machine = planned.machine;
  machine.has_gpu = true;
  machine.compute_capability = kAssumedCapability;
  machine.gpu_free_bytes = memory_bytes - kContext_bytes;
  machine.gpu_context_bytes = kContext_bytes;
  machine.profile.reset();
  planned.name = fmt::format("a GPU with {} that is not here", format_bytes(memory_bytes));
}

PlannedMachine this_machine(const config::Config& config,
                            const std::function<const Nvidia&()>& driver) {
  PlannedMachine planned = {.machine = plan_machine_here(), .name = "the CPU"};
  const std::string& device = config.text("device");
  if (device == "cpu" || device == "simulated") return planned;

  const Nvidia& nvidia = driver();
  const Gpu* const gpu = first_visible_gpu(nvidia);
  const auto refusal = gpu ? refusal_of(facts_of(nvidia, *gpu), gpu_code_of_build()) : std::nullopt;
  if (gpu && !refusal) {
    add_gpus_here(config, nvidia, planned);
    return planned;
  }
  const auto gpu_memory = config.maybe_integer("gpu_memory");
  if (gpu_memory) {
    add_assumed_gpu(*gpu_memory, planned);
    return planned;
  }
  if (device == "auto") {
    if (refusal)
      planned.notes.push_back(
          fmt::format("not planned for the {}, as `ferry train` would not use it: {}; {}",
                      gpu->name, refusal->what, refusal->cure));
    return planned;
  }
  if (refusal)
    throw Error(
        Fault::machine, "plan.device", refusal->what,
        refusal->cure + ", or give --gpu-memory, for example 11GiB, to plan for another GPU");
  throw Error(Fault::usage, "plan.device",
              "device = cuda, but there is no usable GPU to ask for its memory",
              "give --gpu-memory, for example 11GiB, to plan for a GPU that is not here");
}

}  // namespace

void take_gpus_of_machine(config::Config& config) {
  const auto name = config.maybe_text("machine");
  if (!name || !config.text("gpus").empty() || name->find(',') == std::string::npos) return;
  const MachineProfile machine = find_machines(*name);
  const int n = std::max(machine.n_gpus(), machine.gpu->n_of_host);
  config.choose("gpus", fmt::format("{}", n), "machine");
}

PlannedMachine planned_machine(const config::Config& config,
                               const std::function<const Nvidia&()>& driver) {
  const NvmeSettings nvme = nvme_settings(config);
  const Directories& drives = nvme.directories;
  if (const auto name = config.maybe_text("machine")) {
    PlannedMachine known = known_machine(config, *name);
    take_nvme(known.machine, drives);
    return known;
  }
  PlannedMachine planned = this_machine(config, driver);
  take_nvme(planned.machine, drives);
  if (!drives.empty()) planned.machine.nvme_budget_bytes = runs::store_budget_bytes(nvme);
  if (std::string note = note_of_other_machine(); !note.empty())
    planned.notes.push_back(std::move(note));
  return planned;
}

}  // namespace ferry::service
