// ferry plan: the same settings, tensor table and plan as training, without a device and without
// LibTorch; prints bytes by tag and place. A model that does not fit is an Error (exit code 3).

#include "src/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/host_memory.h"
#include "src/base/print.h"
#include "src/cli/plan/plan_texts.h"
#include "src/cli/plan/plan_time.h"
#include "src/cli/settings.h"
#include "src/config/models/models.h"
#include "src/plan/disk.h"
#include "src/plan/param_groups.h"
#include "src/plan/run_plan.h"
#include "src/service/machine/nvidia.h"
#include "src/service/machine/smaller_machine.h"
#include "src/term/table.h"
#include "src/train/generate/prompts.h"
#include "src/train/prepare/model_files.h"

namespace ferry::cli {

namespace {

using nlohmann::ordered_json;

/** Where the settings want a GPU and none is here to ask: an Ampere card whose context takes this
 * much. */
constexpr int kAssumedCapability = 80;
constexpr int64_t kContext_bytes = 512 * kMiB;
/** Labels of a head whose number is known only when the data is read; their bytes are no matter. */
constexpr int64_t kAssumedLabels = 2;

struct PlannedFor {
  PlanMachine machine;
  std::string name;  // "NVIDIA H200", "the CPU"
  std::string note;  // why not for the GPU that is here; may be empty
};

/** As measured, where it was. */
int64_t context_bytes_of(const std::optional<MachineProfile>& profile) {
  const bool is_known = profile && profile->gpu && profile->gpu->context_bytes > 0;
  return is_known ? profile->gpu->context_bytes : kContext_bytes;
}

PlannedFor machine_for(const config::Config& config) {
  PlannedFor planned;
  if (const auto name = config.maybe_text("machine")) {
    MachineProfile profile = find_machine_preset(*name);
    planned.name = fmt::format("{}, by its profile", profile.name);
    const bool is_card = profile.host.memory_bytes == 0;  // of `ferry bench card`
    if (is_card) {
      if (auto own = profile_of_this_machine("")) profile.host = own->host;
      planned.name += ", in this machine";
    }
    if (config.text("device") == "cpu") profile.gpu.reset();
    planned.machine = machine_of(profile);
    if (is_card) planned.machine.host_budget_bytes = read_host_memory().budget_bytes();
    return planned;
  }
  planned.machine.host_budget_bytes = read_host_memory().budget_bytes();
  planned.name = "the CPU";
  planned.machine.profile = profile_of_this_machine("");
  const std::string& device = config.text("device");
  if (device == "cpu" || device == "simulated") return planned;

  const service::Nvidia nvidia = service::read_nvidia();
  const service::Gpu* const gpu = service::first_visible_gpu(nvidia);
  const auto refusal = gpu ? refusal_of(facts_of(nvidia, *gpu), gpu_code_of_build()) : std::nullopt;
  if (gpu && !refusal) {
    planned.machine.profile = profile_of_this_machine(gpu->name);
    const int64_t context_bytes = context_bytes_of(planned.machine.profile);
    const int64_t used_bytes = gpu->memory_total_bytes - gpu->memory_free_bytes;
    planned.machine = {true,
                       gpu->compute_capability,
                       gpu->memory_free_bytes - context_bytes,
                       used_bytes + context_bytes,
                       planned.machine.host_budget_bytes,
                       planned.machine.profile};
    planned.name = gpu->name;
    return planned;
  }
  const auto gpu_memory = config.maybe_integer("gpu_memory");
  if (!gpu_memory && device == "auto") {
    if (refusal)
      planned.note =
          fmt::format("not planned for the {}, as `ferry train` would not use it: {}; {}",
                      gpu->name, refusal->what, refusal->cure);
    return planned;
  }
  if (!gpu_memory && refusal)
    throw Error(
        Fault::machine, "plan.device", refusal->what,
        refusal->cure + ", or give --gpu-memory, for example 11GiB, to plan for another GPU");
  if (!gpu_memory)
    throw Error(Fault::usage, "plan.device",
                "device = cuda, but there is no usable GPU to ask for its memory",
                "give --gpu-memory, for example 11GiB, to plan for a GPU that is not here");
  planned.machine = {true,
                     kAssumedCapability,
                     *gpu_memory - kContext_bytes,
                     kContext_bytes,
                     planned.machine.host_budget_bytes,
                     std::nullopt};
  planned.name = fmt::format("a GPU with {} that is not here", format_bytes(*gpu_memory));
  return planned;
}

struct PlannedModel {
  HfConfig config;
  std::optional<std::filesystem::path> directory;  // its tokenizer's; nullopt: not on this machine
};

/** A model that is known by its name need not be on this machine to be planned. */
PlannedModel find_planned_model(const config::Config& config) {
  if (draws_weights(config)) {
    ScratchModel model = find_scratch_model(config);
    return {std::move(model.config), std::move(model.tokenizer)};
  }
  const std::string& name = config.text("model_name_or_path");
  try {
    const auto directory = config::find_model(name);
    return {HfConfig::load(directory / "config.json"), directory};
  } catch (const Error&) {
    std::error_code error;
    const auto known = config::known_model_config(name);
    if (!known || std::filesystem::exists(name, error)) throw;
    log_line(
        fmt::format("{} is not on this machine: planned with its shape, which is known", name));
    return {HfConfig::parse(*known, name), std::nullopt};
  }
}

struct Disk {
  DiskNeed need;
  std::filesystem::path directory;
  std::optional<int64_t> free_bytes;  // nullopt: the file system does not tell

  bool fits() const { return !free_bytes || need.bytes() <= *free_bytes; }
};

Disk disk_for(const config::Config& config, const ModelTable& model) {
  Disk disk{.need = disk_needed(model, config),
            .directory = config.maybe_text("output_dir").value_or("runs"),
            .free_bytes = {}};
  // A machine that is not here has another disk.
  if (!config.maybe_text("machine")) disk.free_bytes = free_disk_bytes(disk.directory);
  return disk;
}

/** Prints what the process takes besides, where that is not known of this machine. */
void print_reserve(const PlanRequest& request) {
  if (!request.is_reserve_assumed) return;
  const std::string kept = request.has_gpu ? fmt::format("{} of host memory and {} of GPU memory",
                                                         format_bytes(request.host_reserved_bytes),
                                                         format_bytes(request.gpu_reserved_bytes))
                                           : format_bytes(request.host_reserved_bytes);
  fmt::print(
      "Beside this, {} are kept for the process, its libraries and the dataset: assumed, not "
      "measured on that machine. `ferry doctor` measures them.\n\n",
      kept);
}

/** The parts that are printed, whether it fits or not. */
struct Report {
  const ModelTable& model;
  const PlanRequest& request;
  const PlannedFor& planned;
  const Disk& disk;
  const PlannedTexts& texts;
  MoreMemory& more;
  bool is_verbose;
};

/** `refusal`: the plan is the nearest to what there is, and this is why it is none. */
void print_text(const Plan& plan, const Report& report, const Error* refusal) {
  const auto& [model, request, planned, disk, texts, more, is_verbose] = report;
  const term::Terminal terminal = term::detect_terminal(1);
  const int bar_width = term::bar_width(terminal);
  const auto millions = [](int64_t n) { return static_cast<double>(n) / 1e6; };
  const bool is_frozen = model.n_trainable_params() < model.n_params();
  fmt::print(
      "{} of {:.1f} M parameters{} in {} blocks, {}, at most {} tokens, on {}\n{}\n\n",
      model.family, millions(model.n_params()),
      is_frozen ? fmt::format(" ({:.1f} M trained)", millions(model.n_trainable_params())) : "",
      model.blocks.size(), name_of(model.compute), request.max_length, planned.name,
      refusal ? fmt::format("Does not fit. The nearest: {}", plan.why) : plan.why);
  const std::vector<PlanRow> rows = rows_of(plan, request.has_gpu);
  const int64_t most_bytes = rows.empty() ? 0 : rows.front().n_bytes;
  term::Table table({{"what"}, {"where"}, {"bytes", term::Align::right}, {""}});
  for (const PlanRow& row : rows)
    table.add_row({std::string(name_of(row.tag)), std::string(name_of(row.place)),
                   format_bytes(row.n_bytes),
                   term::bar(static_cast<double>(row.n_bytes), static_cast<double>(most_bytes),
                             bar_width, terminal)});
  table.add_rule();
  auto add_sum = [&](const std::string& where, int64_t bytes, int64_t budget_bytes) {
    table.add_row({"in all", where, format_bytes(bytes),
                   fmt::format("of {}{}", format_bytes(budget_bytes),
                               bytes > budget_bytes ? ": too much" : "")});
  };
  const int64_t gpu_bytes = plan.layout.n_bytes[static_cast<size_t>(Place::device)];
  if (request.has_gpu)
    add_sum(std::string(name_of(Place::device)), gpu_bytes, request.gpu_budget_bytes);
  add_sum(std::string(name_of(Place::host)), host_bytes_of(plan, request.has_gpu),
          request.host_budget_bytes);
  table.add_rule();
  table.add_row({"checkpoints", "disk",
                 format_bytes(disk.need.checkpoint_bytes * disk.need.n_checkpoints),
                 fmt::format("{} of {} each", disk.need.n_checkpoints,
                             format_bytes(disk.need.checkpoint_bytes))});
  table.add_row({"final", "disk", format_bytes(disk.need.final_bytes), ""});
  table.add_row({"tokenizers, logs", "disk", format_bytes(disk.need.small_bytes), "at most"});
  table.add_row({"in all", "disk", format_bytes(disk.need.bytes()),
                 disk.free_bytes ? fmt::format("of {} free", format_bytes(*disk.free_bytes)) : ""});
  fmt::print("{}\n", table.text(terminal));
  print_reserve(request);
  if (refusal) return;
  print_plan_time(plan, model, request, planned.machine, texts, more, is_verbose, terminal);
  if (disk.fits()) fmt::print("It fits.\n");
}

void print_json(const Plan& plan, const Report& report, const Error* refusal) {
  const auto& [model, request, planned, disk, texts, more, _] = report;
  ordered_json rows = ordered_json::array();
  for (const PlanRow& row : rows_of(plan, request.has_gpu))
    rows.push_back(
        {{"tag", name_of(row.tag)}, {"place", name_of(row.place)}, {"bytes", row.n_bytes}});
  const ordered_json result = {
      {"fits", !refusal && disk.fits()},
      {"refusal", refusal ? ordered_json(refusal->what()) : nullptr},
      {"device", planned.name},
      {"has_gpu", request.has_gpu},
      {"family", model.family},
      {"n_parameters", model.n_params()},
      {"n_trained_parameters", model.n_trainable_params()},
      {"n_blocks", model.blocks.size()},
      {"dtype", name_of(model.compute)},
      {"max_length", request.max_length},
      {"train_batch_size", request.train_batch_size},
      {"micro_batch_size", plan.micro_batch_size},
      {"n_micro_batches", plan.n_micro},
      {"accumulation_order",
       plan.shape.order == AccumulationOrder::vertical ? "vertical" : "horizontal"},
      {"n_weight_slots", plan.shape.n_weight_slots},
      {"why", plan.why},
      {"rows", rows},
      {"gpu_bytes",
       request.has_gpu ? plan.layout.n_bytes[static_cast<size_t>(Place::device)] : int64_t{0}},
      {"host_bytes", host_bytes_of(plan, request.has_gpu)},
      {"gpu_budget_bytes", request.has_gpu ? ordered_json(request.gpu_budget_bytes) : nullptr},
      {"host_budget_bytes", request.host_budget_bytes},
      {"host_reserved_bytes", request.host_reserved_bytes},
      {"gpu_reserved_bytes", request.has_gpu ? ordered_json(request.gpu_reserved_bytes) : nullptr},
      {"is_reserve_assumed", request.is_reserve_assumed},
      {"n_resident_blocks", plan.n_resident},
      {"time", plan_time_json(plan, model, request, texts, more)},
      {"disk",
       {{"directory", disk.directory.string()},
        {"checkpoint_bytes", disk.need.checkpoint_bytes},
        {"n_checkpoints", disk.need.n_checkpoints},
        {"final_bytes", disk.need.final_bytes},
        {"small_bytes", disk.need.small_bytes},
        {"bytes", disk.need.bytes()},
        {"free_bytes", disk.free_bytes ? ordered_json(*disk.free_bytes) : nullptr}}}};
  fmt::print("{}\n", result.dump(2, ' ', false, ordered_json::error_handler_t::replace));
}

void print(const Plan& plan, const Report& report, bool as_json, const Error* refusal = nullptr) {
  as_json ? print_json(plan, report, refusal) : print_text(plan, report, refusal);
}

}  // namespace

int run_plan(Arguments arguments) {
  auto command = read_settings("plan", arguments);
  if (!command) return 0;
  config::Config& config = command->config;
  const auto [hf, model_directory] = find_planned_model(config);
  take_family_defaults(config, hf);
  check_data_exists(config, "dataset");
  check_data_exists(config, "eval_dataset");
  std::optional<Texts> data;
  if (!config.text("dataset").empty()) data = texts_to_train_on(config, hf);
  const int64_t n_labels = data                  ? data->task->n_labels()
                           : hf.id2label.empty() ? kAssumedLabels
                                                 : static_cast<int64_t>(hf.id2label.size());
  if (data)
    for (const std::string& note : data->notes)
      log_line(note);
  const PlannedFor planned = machine_for(config);
  ModelTable model =
      make_model_table(config, hf, task_kind_of(config).head, n_labels, planned.machine);
  apply_param_options(config, model);
  const PlannedTexts texts =
      count_texts(data, config, model_directory,
                  choose_max_length(config, model.max_positions, planned.machine.has_gpu));
  PlanRequest request =
      make_plan_request(config, model, planned.machine, /*trains=*/true, texts.bytes);
  if (texts.longest > 0) request.max_length = texts.longest;
  request.text_tokens = texts.text_tokens;
  request.generation = count_samples(config, hf, model_directory, request.max_length,
                                     context_of(model.max_positions, planned.machine.has_gpu));
  if (!planned.note.empty()) log_line(planned.note);
  if (!config.maybe_text("machine"))
    if (const std::string note = service::note_of_smaller_machine(*command); !note.empty())
      log_line(note);
  if (const std::string note = note_of_other_machine();
      !config.maybe_text("machine") && !note.empty())
    log_line(note);
  for (const std::string& note : request.notes)
    log_line(note);
  const Disk disk = disk_for(config, model);
  MoreMemory more(model, request);
  const Report report = {model, request, planned, disk, texts, more, command->is_verbose};
  std::optional<Plan> nearest;
  const auto plan_or_show = [&] {
    try {
      return make_plan(model, request, &nearest);
    } catch (const Error& error) {
      if (error.fault() == Fault::does_not_fit && nearest)
        print(*nearest, report, command->wants_json, &error);
      throw;
    }
  };
  const Plan plan = plan_or_show();
  if (const auto file = config.maybe_text("simulate")) {
    if (!request.machine)
      throw Error(Fault::usage, "plan.simulate", "too little is known of what the machine can do",
                  "run `ferry doctor` first, or give --machine, for example 2080ti-11g");
    write_chrome_trace(*file, simulate_plan(model, request, plan, /*keeps_actions=*/true).actions);
  }
  print(plan, report, command->wants_json);
  if (disk.free_bytes) check_disk(disk.need, disk.directory);
  return 0;
}

}  // namespace ferry::cli
