#include "src/service/machine/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/base/process/threads.h"
#include "src/request/run_plan.h"
#include "src/service/machine/child_output.h"

namespace ferry::service {
namespace {

Measured failed(std::string trouble) {
  Measured measured;
  measured.trouble = std::move(trouble);
  return measured;
}

/** The card that was measured, as the driver's library knows it. */
const Gpu* find_gpu(const Nvidia& nvidia, const std::string& name) {
  for (const Gpu& gpu : nvidia.gpus)
    if (gpu.name == name) return &gpu;
  return nullptr;
}

}  // namespace

std::string checked_seconds(const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, seconds);
  if (code != std::errc() || stop != end || !(seconds >= 0.01 && seconds <= 600))
    throw Error(Fault::usage, "cli.argument",
                fmt::format("--seconds {}, expected a number from 0.01 to 600", text));
  return text;
}

Measured parse_measured(std::string_view json) {
  try {
    const auto out = JsonReader::parse(
        std::string(json), {"ferry-trainer's figures", "doctor.measure", "install Ferry anew"});
    Measured measured;
    measured.profile = parse_machine_profile(out.at("profile").value().dump(), "ferry-trainer");
    measured.skipped = out.at("skipped").texts();
    measured.gpu_trouble = out.text("gpu_trouble");
    measured.gpu_free_bytes = out.integer("gpu_free_bytes", 0, INT64_MAX);
    measured.seconds = out.number("seconds", 0, 1e9);
    const JsonReader steps = out.at("steps");
    for (size_t i = 0; i < steps.size(); ++i)
      measured.steps.push_back({steps.at(i).text("model"), steps.at(i).text("placement"),
                                steps.at(i).number("ms", 0, 1e9)});
    const auto exchanges = out.find("exchanges");
    if (!exchanges) return measured;
    for (size_t i = 0; i < exchanges->size(); ++i) {
      const JsonReader time = exchanges->at(i);
      measured.exchanges.push_back({.operation = time.text("operation"),
                                    .n_bytes = time.integer("bytes", 1, INT64_MAX),
                                    .seconds = time.number("seconds", 0, 1e9),
                                    .bytes_per_s = time.number("bytes_per_s", 0, 1e15),
                                    .bus_bytes_per_s = time.number("bus_bytes_per_s", 0, 1e15)});
    }
    measured.exchange_by = out.text("by");
    measured.n_ranks = out.integer("n_ranks", 2, INT32_MAX);
    return measured;
  } catch (const Error& error) {
    return failed(error.what());
  }
}

Measured run_trainer_bench(const std::filesystem::path& trainer,
                           const std::vector<std::string>& words,
                           double patience_s,
                           const std::stop_token& stop) {
  if (const auto at = std::ranges::find(words, "--seconds"); words.end() - at > 1)
    patience_s += 3 * std::strtod((at + 1)->c_str(), nullptr);
  std::vector<std::string> all = {trainer.string(), "bench"};
  all.insert(all.end(), words.begin(), words.end());
  limit_spinning_of_children();  // as trainings have it
  const ChildOutput output = run_child("ferry-trainer", all, patience_s, stop);
  if (!output.trouble.empty()) return failed(output.trouble);
  return parse_measured(output.text);
}

void take_exchanges(const std::optional<MachineProfile>& kept, MachineProfile& profile) {
  if (!kept) return;
  if (!profile.host.exchange) profile.host.exchange = kept->host.exchange;
  const bool is_same_gpu = profile.gpu && kept->gpu && profile.gpu->name == kept->gpu->name;
  if (is_same_gpu && !profile.gpu->exchange) profile.gpu->exchange = kept->gpu->exchange;
}

bool keep_exchange(const Measured& measured) {
  const MachineProfile& found = *measured.profile;
  bool is_kept = false;
  change_machine_profile([&]() -> std::optional<MachineProfile> {
    std::optional<MachineProfile> profile =
        profile_of_this_machine(found.gpu ? found.gpu->name : "");
    if (!profile) return std::nullopt;
    is_kept = true;
    if (found.host.exchange) profile->host.exchange = found.host.exchange;
    if (found.gpu && found.gpu->exchange) profile->gpu->exchange = found.gpu->exchange;
    std::erase_if(profile->learnt, is_of_several_ranks);
    return profile;
  });
  return is_kept;
}

void add_facts(Measured& measured, const Host& host, const Nvidia& nvidia) {
  if (!measured.profile) return;
  MachineProfile& profile = *measured.profile;
  profile.host.cpu = host.cpu;
  if (profile.gpu) {
    profile.gpu->driver = nvidia.driver_version;
    if (const Gpu* gpu = find_gpu(nvidia, profile.gpu->name)) {
      profile.gpu->drives_display = gpu->drives_display;
      profile.gpu->pcie_generation = gpu->pcie_generation;
      profile.gpu->pcie_width = gpu->pcie_width;
      profile.gpu->power_w = gpu->power_limit_w;
      const int64_t taken_bytes = gpu->memory_free_bytes - measured.gpu_free_bytes;
      if (gpu->memory_free_bytes > 0 && taken_bytes > 0) profile.gpu->context_bytes = taken_bytes;
    }
  }
  const std::string cpu = host.cpu.empty() ? "an unknown processor" : host.cpu;
  profile.name = profile.gpu ? fmt::format("{}, {}", profile.gpu->name, cpu) : cpu;
}

namespace {

bool knows(const MachineProfile& profile, const std::string& gpu_name) {
  for (int i = 0; i < profile.n_gpus(); ++i)
    if (profile.gpu_at(i).name == gpu_name) return true;
  return false;
}

/** CUDA_VISIBLE_DEVICES does not say by numbers which GPUs programs may take. */
bool names_gpus_by_uuid() {
  const char* const text = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string_view list = text ? text : "";
  return list.starts_with("GPU-") || list.starts_with("MIG-");
}

/** A machine with two GPUs of a model has its figures twice, the measured one first. */
void repeat_by_gpu(const std::vector<const Gpu*>& gpus, MachineProfile& profile) {
  std::map<std::string, GpuProfile> of_models;
  for (int i = 0; i < profile.n_gpus(); ++i)
    of_models.emplace(profile.gpu_at(i).name, profile.gpu_at(i));
  std::vector<GpuProfile> others;
  bool has_first = false;
  for (const Gpu* gpu : gpus) {
    const bool is_first = !has_first && gpu->name == profile.gpu->name;
    has_first |= is_first;
    if (const auto found = of_models.find(gpu->name); !is_first && found != of_models.end())
      others.push_back(found->second);
  }
  profile.other_gpus = std::move(others);
}

}  // namespace

void measure_other_gpus(const std::filesystem::path& trainer,
                        const Host& host,
                        const Nvidia& nvidia,
                        const std::string& seconds,
                        const std::stop_token& stop,
                        Measured& measured) {
  if (!measured.profile || !measured.profile->gpu || names_gpus_by_uuid()) return;
  MachineProfile& profile = *measured.profile;
  const std::vector<const Gpu*> gpus = visible_gpus(nvidia);
  for (const Gpu* gpu : gpus) {
    if (stop.stop_requested() || knows(profile, gpu->name)) continue;
    const std::string number = std::to_string(gpu - nvidia.gpus.data());
    std::vector<std::string> words = {"card", "--json", "--gpu", number};
    if (!seconds.empty()) words.insert(words.end(), {"--seconds", seconds});
    Measured its = run_trainer_bench(trainer, words, kBenchPatience_s, stop);
    add_facts(its, host, nvidia);
    measured.seconds += its.seconds;
    const bool is_it = its.profile && its.profile->gpu && its.profile->gpu->name == gpu->name;
    if (is_it && !its.profile->gpu->gemms.empty()) {
      profile.other_gpus.push_back(*its.profile->gpu);
      continue;
    }
    const std::string why = !its.trouble.empty()       ? its.trouble
                            : !its.gpu_trouble.empty() ? its.gpu_trouble
                                                       : "the trainer sees another GPU";
    measured.skipped.push_back(fmt::format("GPU {} ({}): {}", number, gpu->name, why));
  }
  if (profile.has_unlike_gpus()) repeat_by_gpu(gpus, profile);
}

void take_other_gpus(const std::optional<MachineProfile>& kept,
                     const Nvidia& nvidia,
                     MachineProfile& profile) {
  if (!kept || !profile.gpu) return;
  for (int i = 0; i < kept->n_gpus(); ++i) {
    const GpuProfile& gpu = kept->gpu_at(i);
    if (!knows(profile, gpu.name) && find_gpu(nvidia, gpu.name)) profile.other_gpus.push_back(gpu);
  }
}

}  // namespace ferry::service
