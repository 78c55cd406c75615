#include "src/service/machine/smaller_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/bytes.h"

namespace ferry::service {

MachineHere machine_here(const Nvidia& nvidia, const HostMemory& memory) {
  MachineHere here = {.host_bytes = memory.cgroup_limit_bytes.value_or(memory.total_bytes)};
  const Gpu* const gpu = first_visible_gpu(nvidia);
  if (!gpu || refusal_of(facts_of(nvidia, *gpu), gpu_code_of_build())) return here;
  here.gpu_bytes = gpu->memory_total_bytes;
  here.compute_capability = gpu->compute_capability;
  here.n_gpus = n_visible_gpus(nvidia);
  return here;
}

std::string note_of_smaller_machine(const config::CommandLine& command) {
  const config::PresetHead& head = command.head;
  const auto memory_bytes = host_memory_bytes(head);
  if (!memory_bytes) return {};
  const config::Config& config = command.config;
  const std::string& device = config.text("device");
  MachineHere here = machine_here(read_nvidia(), read_host_memory());
  if (device == "cpu" || device == "simulated") here.gpu_bytes = 0;
  const auto limit = [&](int64_t& bytes, std::string_view key) {
    bytes = std::min(bytes, config.maybe_integer(key).value_or(INT64_MAX));
  };
  limit(here.gpu_bytes, "gpu_memory");
  limit(here.host_bytes, "host_memory");
  const std::vector<std::string> found = lacks(here, head);
  if (found.empty()) return {};
  return fmt::format(
      "the preset was made for {}{} of host memory; here is {}: the plan says whether it fits",
      head.card.empty() ? "" : head.card + " and ", format_bytes(*memory_bytes),
      fmt::join(found, ", and "));
}

}  // namespace ferry::service
