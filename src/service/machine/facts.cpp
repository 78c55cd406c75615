#include "src/service/machine/facts.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "simd/level.h"
#include "src/base/error.h"
#include "src/base/version.h"
#include "src/config/preset.h"
#include "src/request/nvme.h"
#include "src/request/run_plan.h"
#include "src/runs/store/drive_rates.h"
#include "src/service/machine/smaller_machine.h"
#include "src/service/trainer_program.h"

namespace ferry::service {

using nlohmann::ordered_json;

namespace {

ordered_json optional_json(const std::optional<int64_t>& value) {
  return value ? ordered_json(*value) : nullptr;
}

/** Names of the presets that were made for no more than the machine has. */
std::vector<std::string> presets_for(const MachineHere& here) {
  std::vector<std::string> names;
  for (const config::Preset& preset : config::list_presets()) {
    try {
      if (lacks(here, read_preset(preset).head).empty()) names.push_back(preset.name);
    } catch (const Error&) {
      // `ferry presets ls` says what is wrong with it.
    }
  }
  return names;
}

}  // namespace

Facts read_facts() {
  Facts facts;
  facts.host = read_host();
  facts.memory = read_host_memory();
  facts.nvidia = read_nvidia();
  facts.gpu_code = gpu_code_of_build();
  try {
    facts.simd_level = simd::level_name();
  } catch (const Error& error) {
    facts.simd_trouble = error.what();
  }
  try {
    look_at_drives(facts, nvme_directories_of_environment());
  } catch (const Error& error) {
    facts.nvme_trouble = error.what();
  }
  try {
    facts.trainer = find_trainer();
  } catch (const Error& error) {
    facts.trainer_trouble = error.what();
  }
  for (const config::Preset& preset : config::list_presets())
    facts.presets.push_back(preset.name);
  facts.presets_here = presets_for(machine_here(facts.nvidia, facts.memory));
  facts.hides_gpus = !facts.nvidia.gpus.empty() && !first_visible_gpu(facts.nvidia);
  return facts;
}

void look_at_drives(Facts& facts, std::vector<std::filesystem::path> directories) {
  facts.nvme_directories = std::move(directories);
  facts.wear = read_drive_wear(facts.nvme_directories);
}

void load_profile(Facts& facts) {
  try {
    facts.profile = load_machine_profile();
  } catch (const Error& error) {
    facts.measure_trouble = error.what();
  }
}

namespace {

/** Nothing where there are no drives, or they cannot be measured. */
std::optional<NvmeProfile> measure_drives(Facts& facts, const std::string& seconds) {
  constexpr double kShare = 0.5;
  if (facts.nvme_directories.empty()) return std::nullopt;
  try {
    return measure_nvme(
        facts.nvme_directories,
        seconds.empty() ? kNvmeMeasured_s : kShare * std::strtod(seconds.c_str(), nullptr));
  } catch (const Error& error) {
    facts.nvme_trouble = error.what();
    return std::nullopt;
  }
}

/** Earlier rates of drives stay, but for those that were measured now. */
std::vector<NvmeProfile> drives_of(const std::optional<MachineProfile>& kept,
                                   const std::optional<NvmeProfile>& measured) {
  MachineProfile profile;
  if (kept) profile.nvme = kept->nvme;
  if (measured) put_nvme(profile, *measured);
  return profile.nvme;
}

}  // namespace

Measured measure_and_store(Facts& facts, const std::string& seconds, const std::stop_token& stop) {
  Measured measured;
  if (!facts.trainer) return measured;  // a fault of its own
  std::vector<std::string> words = {"all", "--json"};
  if (!seconds.empty()) words.insert(words.end(), {"--seconds", seconds});
  measured = run_trainer_bench(*facts.trainer, words, kBenchPatience_s, stop);
  add_facts(measured, facts.host, facts.nvidia);
  measure_other_gpus(*facts.trainer, facts.host, facts.nvidia, seconds, stop, measured);
  facts.measure_trouble = measured.trouble;
  facts.profile = measured.profile;
  facts.is_measured_now = true;
  if (!measured.profile) return measured;
  const std::optional<NvmeProfile> drives = measure_drives(facts, seconds);
  const auto merge = [&]() -> std::optional<MachineProfile> {
    const auto kept = profile_of_this_machine("");  // of any GPU; one that is damaged is none
    measured.profile->nvme = facts.profile->nvme = drives_of(kept, drives);
    take_exchanges(kept, *measured.profile);
    take_exchanges(kept, *facts.profile);
    take_other_gpus(kept, facts.nvidia, *measured.profile);
    facts.profile->other_gpus = measured.profile->other_gpus;
    const auto& gpu = measured.profile->gpu;
    if (kept && kept->gpu && !facts.nvidia.gpus.empty() &&
        (!gpu || gpu->gemms.empty() || gpu->copies.empty()))
      throw Error(Fault::machine, "doctor.measure",
                  "the GPU could not be measured now; the figures measured before are kept",
                  "end what else uses the GPU and run `ferry doctor` again");
    return measured.profile;
  };
  try {
    facts.profile->nvme = measured.profile->nvme = drives_of(std::nullopt, drives);
    change_machine_profile(merge);
  } catch (const Error& error) {
    facts.store_trouble = error.what();
  }
  return measured;
}

std::string_view name_of(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

bool is_usable(const std::vector<Finding>& findings) {
  return findings.empty() || findings.front().severity != Severity::error;
}

namespace {

ordered_json json_of(const DriveWear& wear) {
  ordered_json drives = ordered_json::array();
  for (const auto& [name, health] : wear.drives)
    drives.push_back({{"name", name},
                      {"used_percent", health.used_percent},
                      {"spare_percent", health.spare_percent},
                      {"read_bytes", health.read_bytes},
                      {"written_bytes", health.written_bytes},
                      {"media_errors", health.n_media_errors},
                      {"warns", health.warns}});
  return drives;
}

}  // namespace

ordered_json to_json(const Facts& facts,
                     const std::vector<Finding>& findings,
                     const Measured& measured) {
  ordered_json gpus = ordered_json::array(), faults = ordered_json::array();
  for (const Gpu& gpu : facts.nvidia.gpus)
    gpus.push_back({{"name", gpu.name},
                    {"memory_total_bytes", gpu.memory_total_bytes},
                    {"memory_free_bytes", gpu.memory_free_bytes},
                    {"compute_capability", gpu.compute_capability},
                    {"pcie_generation", gpu.pcie_generation},
                    {"pcie_width", gpu.pcie_width},
                    {"power_limit_w", gpu.power_limit_w},
                    {"drives_display", gpu.drives_display}});
  for (const Finding& finding : findings)
    faults.push_back(
        {{"severity", name_of(finding.severity)}, {"what", finding.what}, {"cure", finding.cure}});
  const Host& host = facts.host;
  return {
      {"usable", is_usable(findings)},
      {"ferry",
       {{"version", ferry_version()},
        {"trainer", facts.trainer ? ordered_json(facts.trainer->string()) : nullptr},
        {"presets", facts.presets},
        {"presets_here", facts.presets_here}}},
      {"system",
       {{"distribution", host.distribution}, {"kernel", host.kernel}, {"is_wsl", host.is_wsl}}},
      {"cpu",
       {{"name", host.cpu},
        {"n_cores", host.n_cores},
        {"n_threads", host.n_threads},
        {"simd", facts.simd_level}}},
      {"memory",
       {{"total_bytes", facts.memory.total_bytes},
        {"available_bytes", facts.memory.available_bytes},
        {"cgroup_limit_bytes", optional_json(facts.memory.cgroup_limit_bytes)},
        {"budget_bytes", facts.memory.budget_bytes()},
        {"memlock_limit_bytes", optional_json(host.memlock_limit_bytes)},
        {"huge_pages", host.huge_pages},
        {"swap_total_bytes", host.swap_total_bytes},
        {"swap_free_bytes", host.swap_free_bytes}}},
      {"disk", {{"total_bytes", host.disk_total_bytes}, {"free_bytes", host.disk_free_bytes}}},
      {"nvme", json_of(facts.wear)},
      {"nvidia",
       {{"driver_version", facts.nvidia.driver_version},
        {"cuda_version", facts.nvidia.cuda_version},
        {"trouble", facts.nvidia.trouble},
        {"gpus", gpus}}},
      {"profile", facts.profile ? ordered_json::parse(ferry::to_json(*facts.profile)) : nullptr},
      {"skipped", measured.skipped},
      {"findings", faults}};
}

void hide_places(MachineProfile& profile) {
  profile.disk.directory.clear();
  for (size_t i = 0; i < profile.nvme.size(); ++i) {
    profile.nvme[i].directories.clear();
    profile.nvme[i].drives = {fmt::format("drives {}", i + 1)};
  }
}

ordered_json machine_report() {
  Facts facts = read_facts();
  load_profile(facts);
  if (facts.profile) hide_places(*facts.profile);
  return to_json(facts, diagnose(facts), {});
}

}  // namespace ferry::service
