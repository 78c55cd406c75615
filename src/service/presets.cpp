#include "src/service/presets.h"

#include <fmt/format.h>

#include <future>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/config/models/models.h"
#include "src/inputs/model_files.h"
#include "src/request/disk.h"
#include "src/request/param_groups.h"
#include "src/request/ranks.h"
#include "src/service/preset_request.h"
#include "src/tasks/task.h"

namespace ferry::service {
namespace {

MachineProfile card_of(const config::PresetHead& head) {
  try {
    return find_machine_preset(head.card);
  } catch (const Error& error) {
    throw Error(Fault::usage, "preset.card",
                fmt::format("preset.card ({}): {}", head.card_where, error.what()));
  }
}

/** The card in a machine with the preset's host memory; without a card a CPU. */
PlanMachine machine_for(const PresetFacts& facts, const std::optional<MachineProfile>& own) {
  const config::PresetHead& head = facts.head;
  if (!head.card.empty()) {
    MachineProfile profile = card_of(head);
    profile.host.memory_bytes = head.host_memory_bytes.value_or(profile.host.memory_bytes);
    if (facts.settings.text("device") == "cpu") profile.gpu.reset();
    return machine_of(profile);
  }
  MachineProfile cpu = own.value_or(MachineProfile());
  cpu.gpu.reset();
  cpu.host.memory_bytes = head.host_memory_bytes.value_or(read_host_memory().total_bytes);
  PlanMachine machine = machine_of(cpu);
  if (!own) machine.profile.reset();
  return machine;
}

/** Its shape is enough: of a model that is known by its name no file is read. */
HfConfig shape_of(const PresetFacts& facts) {
  if (facts.model.empty())
    throw Error(Fault::usage, "preset.model",
                fmt::format("'{}' names no model", facts.preset.file.string()),
                "it is planned with one: ferry plan --preset NAME --model MODEL");
  if (facts.is_new) return find_scratch_model(facts.settings).config;
  if (const auto known = config::known_model_config(facts.model))
    return HfConfig::parse(*known, facts.model);
  return HfConfig::load(config::config_file_of(config::find_model(facts.model)));
}

PresetPlan::Time time_of(const ModelTable& model, const PlanRequest& request, const Plan& plan) {
  const double samples_per_s = samples_per_second(request, plan);
  return {.step_s = plan.predicted->step_s,
          .samples_per_s = samples_per_s,
          .tokens_per_s = samples_per_s * static_cast<double>(request.max_length),
          .least_samples_per_s = least_samples_per_second(model, request, plan),
          .binding = std::string(name_of(plan.predicted->binding()))};
}

}  // namespace

PresetFacts read_preset(const config::Preset& preset) {
  PresetFacts facts{.preset = preset};
  facts.head = read_toml_file(facts.settings, preset.file, config::Source::preset);
  facts.is_new = draws_weights(facts.settings);
  facts.model = facts.settings.text(facts.is_new ? "config_name" : "model_name_or_path");
  facts.task = facts.settings.text("task");
  if (!facts.is_new) facts.hub_id = config::known_model_id(facts.model).value_or("");
  return facts;
}

std::vector<PresetFacts> own_presets() {
  std::vector<PresetFacts> presets;
  for (const config::Preset& preset : config::list_presets())
    if (!preset.is_users) presets.push_back(read_preset(preset));
  return presets;
}

std::optional<int64_t> host_memory_bytes(const config::PresetHead& head) {
  if (head.host_memory_bytes || head.card.empty()) return head.host_memory_bytes;
  return card_of(head).host.memory_bytes;
}

PresetRequest preset_request(const PresetFacts& facts, const std::optional<MachineProfile>& own) {
  constexpr int64_t kAssumedLabels = 2;  // their bytes are no matter
  const HfConfig hf = shape_of(facts);
  config::Config settings = facts.settings;
  settings.settle();
  take_family_defaults(settings, hf);
  PlanMachine machine = machine_for(facts, own);
  ModelTable model = make_model_table(settings, hf, task_kind(facts.task).head, kAssumedLabels,
                                      machine, sharing_of(settings, ranks_of(settings)));
  apply_param_options(settings, model);
  PlanRequest request = make_plan_request(settings, model, machine, /*trains=*/true);
  return {std::move(settings), std::move(machine), std::move(model), std::move(request)};
}

PresetPlan plan_preset(const PresetFacts& facts, const std::optional<MachineProfile>& own) {
  const auto [settings, machine, model, request] = preset_request(facts, own);
  PresetPlan result{.has_gpu = request.has_gpu,
                    .n_gpus = request.world,
                    .train_batch_size = request.train_batch_size,
                    .max_length = request.max_length,
                    .gpu_budget_bytes = request.has_gpu ? request.gpu_budget_bytes : 0,
                    .host_budget_bytes = request.host_budget_bytes,
                    .host_limit_bytes = machine.host_budget_bytes,
                    .disk_bytes = disk_needed(model, settings).bytes()};
  std::optional<Plan> plan;
  try {
    plan = make_plan(model, request, &plan);
  } catch (const Error& error) {
    if (error.fault() != Fault::does_not_fit) throw;
    result.refusal = error.what();
  }
  if (!plan) return result;  // nothing could be laid out
  result.why = plan->why;
  result.gpu_bytes = request.has_gpu ? plan->layout.n_bytes[Place::device] : 0;
  result.host_bytes = host_bytes_of(*plan, request.has_gpu);
  if (result.refusal.empty() && plan->predicted) result.time = time_of(model, request, *plan);
  return result;
}

std::vector<PresetPlan> plan_presets(std::span<const PresetFacts> presets) {
  std::vector<std::future<PresetPlan>> futures;
  for (const PresetFacts& facts : presets)
    futures.push_back(std::async(std::launch::async, [&facts] { return plan_preset(facts); }));
  std::vector<PresetPlan> plans;
  for (std::future<PresetPlan>& future : futures)
    plans.push_back(future.get());
  return plans;
}

std::vector<std::string> lacks(const MachineHere& here, const config::PresetHead& head) {
  constexpr int kBf16_capability = 80;
  // A driver, and a kernel, keep some of what is built in.
  constexpr double kGpuShare = 0.97, kHostShare = 0.9;
  std::vector<std::string> found;
  const auto compare = [&](int64_t bytes, int64_t made_for_bytes, double share, const char* what) {
    if (static_cast<double>(bytes) < share * static_cast<double>(made_for_bytes))
      found.push_back(fmt::format("{} of {} memory instead of {}", format_bytes(bytes), what,
                                  format_bytes(made_for_bytes)));
  };
  if (!head.card.empty()) {
    const GpuProfile card = card_of(head).gpu.value_or(GpuProfile());
    if (here.gpu_bytes == 0)
      found.emplace_back("no GPU to train on");
    else
      compare(here.gpu_bytes, card.memory_bytes, kGpuShare, "GPU");
    if (here.gpu_bytes > 0 && here.compute_capability < kBf16_capability &&
        card.compute_capability >= kBf16_capability)
      found.emplace_back("a GPU without bf16, which computes in fp16");
    if (here.gpu_bytes > 0 && here.n_gpus < card.n_of_host)
      found.push_back(fmt::format("{} GPU{} instead of {}", here.n_gpus,
                                  here.n_gpus == 1 ? "" : "s", card.n_of_host));
  }
  compare(here.host_bytes, host_memory_bytes(head).value_or(0), kHostShare, "host");
  return found;
}

}  // namespace ferry::service
