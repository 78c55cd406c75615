#include "src/service/plan/plan_machine.h"

#include <fmt/format.h>

#include <utility>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/request/nvme.h"
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

PlannedMachine known_machine(const config::Config& config, const std::string& name) {
  MachineProfile profile = find_machine_preset(name);
  PlannedMachine planned = {.name = fmt::format("{}, by its profile", profile.name)};
  const bool is_card = profile.host.memory_bytes == 0;  // of `ferry bench card`
  if (is_card) {
    if (auto own = profile_of_this_machine("")) {
      profile.host = own->host;
      profile.nvme = own->nvme;
    }
    planned.name += ", in this machine";
  }
  if (config.text("device") == "cpu") profile.gpu.reset();
  planned.machine = machine_of(profile);
  if (is_card) planned.machine.host_budget_bytes = read_host_memory().budget_bytes();
  return planned;
}

/** The driver counts a context once the trainer has one. */
void add_gpu_here(const Gpu& gpu, PlannedMachine& planned) {
  const int64_t context_bytes = context_bytes_of(gpu);
  add_gpu({.name = gpu.name,
           .compute_capability = gpu.compute_capability,
           .free_bytes = gpu.memory_free_bytes - context_bytes,
           .taken_bytes = gpu.memory_total_bytes - gpu.memory_free_bytes + context_bytes},
          planned.machine);
  planned.name = gpu.name;
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
    add_gpu_here(*gpu, planned);
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
