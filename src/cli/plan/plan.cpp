// ferry plan: the same settings, tensor table and plan as training, without a device and without
// LibTorch; prints bytes by tag and place. A model that does not fit is an Error (exit code 3).

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/print.h"
#include "src/cli/inputs.h"
#include "src/cli/plan/plan_time.h"
#include "src/cli/settings.h"
#include "src/request/nvme.h"
#include "src/runs/store/drive_rates.h"
#include "src/service/machine/drive_wear.h"
#include "src/service/machine/smaller_machine.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

using nlohmann::ordered_json;
using service::PlanAnswer;

/** Prints what the process takes besides, where that is not known of this machine. */
void print_reserve(const PlanRequest& request) {
  if (!request.is_reserve_assumed) return;
  const std::string kept = request.has_gpu ? fmt::format("{} of host memory and {} of GPU memory",
                                                         format_bytes(request.host_reserved_bytes),
                                                         format_bytes(request.gpu_reserved_bytes))
                                           : format_bytes(request.host_reserved_bytes);
  ferry::print(fmt::format(
      "Beside this, {} are kept for the process, its libraries and the dataset: assumed, not "
      "measured on that machine. `ferry doctor` measures them.\n\n",
      kept));
}

/** The store of a run's states, weights and gradients, with all copies. */
std::vector<std::string> nvme_row(const service::PlannedNvme& nvme) {
  const int64_t n_bytes = nvme.need.store_bytes;
  // So many copies that no store has room for them.
  const bool is_possible = n_bytes <= kStore_bytes_max;
  std::string limit =
      nvme.budget_bytes ? fmt::format("of {}", format_bytes(*nvme.budget_bytes)) : std::string();
  if (n_bytes > nvme.budget_bytes.value_or(kStore_bytes_max)) limit += ": too much";
  if (n_bytes > 0 && is_possible)
    limit += fmt::format("{}{} copies of the {}{}", limit.empty() ? "" : "; ", nvme.n_copies,
                         contents_text(nvme.need, /*with_grads=*/false),
                         nvme.need.grad_bytes > 0 ? ", one of the gradients" : "");
  return {"in all", std::string(name_of(Place::nvme)), is_possible ? format_bytes(n_bytes) : "",
          limit};
}

void print_wear(const service::PlannedNvme& nvme, bool is_verbose) {
  if (nvme.need.n_blocks == 0) return fmt::print("{}.\n\n", kDriveUnused);
  const std::string text = wear_text(nvme.need, nvme.life);
  if (text.empty()) return;
  ferry::print(fmt::format("{}\n", text));
  if (is_verbose && !nvme.life)
    fmt::print("How long the drive lasts is not known: give nvme_endurance.\n");
  if (nvme.budget_bytes)  // the drives are here
    for (const auto& [name, health] : service::read_drive_wear(nvme.settings.directories).drives)
      ferry::print(fmt::format("{}.\n", health_text(name, health)));
  fmt::print("\n");
  if (const std::string warning = wear_warning(nvme.life); !warning.empty())
    log_line("warning: " + warning);
}

/** "335.2 M", "8.03 B" */
std::string count_text(int64_t n) {
  constexpr double kMillion = 1e6, kBillion = 1e9;
  const auto number = static_cast<double>(n);
  return number < kBillion ? fmt::format("{:.1f} M", number / kMillion)
                           : fmt::format("{:.2f} B", number / kBillion);
}

/** "41 blocks (embeddings in 5 pieces, 32 layers, head in 4)": a vocabulary is paged in pieces. */
std::string blocks_text(const ModelTable& model) {
  const auto n_of = [&](BlockKind kind) {
    return std::ranges::count(model.blocks, kind, &BlockTable::kind);
  };
  const auto pieces = [&](BlockKind kind, std::string_view name) {
    const auto n = n_of(kind);
    return n > 1 ? fmt::format("{} in {} pieces", name, n) : std::string(name);
  };
  return fmt::format("{} blocks ({}, {} layers, {})", model.blocks.size(),
                     pieces(BlockKind::embeddings, "embeddings"), n_of(BlockKind::layer),
                     pieces(BlockKind::head, "head"));
}

/** The host memory that copies touch. */
void add_pinning(const Plan& plan, const PlanRequest& request, term::Table& table) {
  const PlannedPinning pinning = pinning_of(plan, request);
  const bool is_limited = request.pinned_bytes_max < INT64_MAX;
  table.add_row({"pinned of that", std::string(name_of(Place::host)),
                 format_bytes(pinning.pinned_bytes),
                 is_limited ? fmt::format("of {}", format_bytes(request.pinned_bytes_max))
                            : "where the system allows"});
  if (pinning.ring_bytes > 0)
    table.add_row({"through the ring", std::string(name_of(Place::host)),
                   format_bytes(pinning.unpinned_bytes),
                   fmt::format("{} a step, ring {}", format_bytes(pinning.step_ring_bytes),
                               format_bytes(pinning.ring_bytes))});
}

ordered_json pinning_json(const Plan& plan, const PlanRequest& request) {
  if (!request.has_gpu) return nullptr;
  const PlannedPinning pinning = pinning_of(plan, request);
  const bool is_limited = request.pinned_bytes_max < INT64_MAX;
  return {{"limit_bytes", is_limited ? ordered_json(request.pinned_bytes_max) : nullptr},
          {"pinned_bytes", pinning.pinned_bytes},
          {"ring_bytes", pinning.ring_bytes},
          {"unpinned_bytes", pinning.unpinned_bytes},
          {"step_ring_bytes", pinning.step_ring_bytes}};
}

/** A host's ranks share its memory; the rows above are of one of them. */
void add_sum_of_host(const Plan& plan, const PlanRequest& request, term::Table& table) {
  const int64_t n = request.n_per_host;
  table.add_row({fmt::format("all {} of a host", request.has_gpu ? "GPUs" : "processes"),
                 std::string(name_of(Place::host)),
                 format_bytes(n * host_bytes_of(plan, request.has_gpu)),
                 fmt::format("of {}", format_bytes(n * request.host_budget_bytes))});
}

/** "8 GPUs of one host, of which the table has one": empty of one rank. */
std::string ranks_text(const PlanRequest& request) {
  if (request.world == 1) return {};
  const int n_hosts = (request.world + request.n_per_host - 1) / request.n_per_host;
  return fmt::format(", {} {} of {}; the table is of each", request.world,
                     request.has_gpu ? "GPUs" : "processes",
                     n_hosts == 1 ? std::string("one host") : fmt::format("{} hosts", n_hosts));
}

/** The plan of a refused answer is the nearest to what there is. */
void print_text(const PlanAnswer& answer, bool is_verbose) {
  const Plan& plan = *answer.plan;
  const ModelTable& model = answer.model;
  const PlanRequest& request = answer.request;
  const service::PlannedDisk& disk = answer.disk;
  const term::Terminal terminal = term::detect_terminal(1);
  const int bar_width = term::bar_width(terminal);
  const bool is_frozen = model.n_trainable_params() < model.n_params();
  ferry::print(fmt::format(
      "{} for {}, {} parameters{}, in {}\n{}, at most {} tokens, on {}{}\n{}\n\n", model.family,
      answer.config.text("task"), count_text(model.n_params()),
      is_frozen ? fmt::format(" ({} of them trained)", count_text(model.n_trainable_params())) : "",
      blocks_text(model), name_of(model.compute), request.max_length, answer.machine.name,
      ranks_text(request),
      answer.refusal ? fmt::format("Does not fit. The nearest: {}", plan.why) : plan.why));
  const std::vector<PlanRow> rows = rows_of(plan, request.has_gpu);
  const int64_t most_bytes = rows.empty() ? 0 : rows.front().n_bytes;
  term::Table table({{"what"}, {"where"}, {"bytes", term::Align::right}, {""}});
  for (const PlanRow& row : rows)
    table.add_row({std::string(row.name), std::string(name_of(row.place)),
                   format_bytes(row.n_bytes),
                   term::bar(static_cast<double>(row.n_bytes), static_cast<double>(most_bytes),
                             bar_width, terminal)});
  table.add_rule();
  auto add_sum = [&](const std::string& where, int64_t bytes, int64_t budget_bytes) {
    table.add_row({"in all", where, format_bytes(bytes),
                   fmt::format("of {}{}", format_bytes(budget_bytes),
                               bytes > budget_bytes ? ": too much" : "")});
  };
  const int64_t gpu_bytes = plan.layout.n_bytes[Place::device];
  if (request.has_gpu)
    add_sum(std::string(name_of(Place::device)), gpu_bytes, gpu_budget_of(request, plan.shape));
  add_sum(std::string(name_of(Place::host)), host_bytes_of(plan, request.has_gpu),
          request.host_budget_bytes);
  if (request.n_per_host > 1) add_sum_of_host(plan, request, table);
  if (request.has_gpu) add_pinning(plan, request, table);
  if (answer.nvme) table.add_row(nvme_row(*answer.nvme));
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
  if (answer.refusal) return;
  if (answer.nvme) print_wear(*answer.nvme, is_verbose);
  print_plan_time(answer, is_verbose, terminal);
  if (disk.fits()) fmt::print("It fits.\n");
}

ordered_json nvme_json(const service::PlannedNvme& nvme) {
  const auto known = [](const auto& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  ordered_json directories = ordered_json::array();
  for (const auto& directory : nvme.settings.directories)
    directories.push_back(directory.string());
  return {{"directories", directories},
          {"n_blocks", nvme.need.n_blocks},
          {"store_bytes", nvme.need.store_bytes},
          {"grad_bytes", nvme.need.grad_bytes},
          {"n_copies", nvme.n_copies},
          {"budget_bytes", known(nvme.budget_bytes)},
          {"step_read_bytes", nvme.need.read_bytes},
          {"step_written_bytes", nvme.need.written_bytes},
          {"window_bytes", nvme.need.window_bytes},
          {"endurance_bytes", known(nvme.settings.endurance_bytes)},
          {"life_steps", nvme.life ? ordered_json(nvme.life->n_steps) : nullptr},
          {"life_s", nvme.life ? known(nvme.life->seconds) : nullptr}};
}

void print_json(const PlanAnswer& answer) {
  const Plan& plan = *answer.plan;
  const ModelTable& model = answer.model;
  const PlanRequest& request = answer.request;
  const service::PlannedDisk& disk = answer.disk;
  ordered_json rows = ordered_json::array();
  for (const PlanRow& row : rows_of(plan, request.has_gpu))
    rows.push_back({{"tag", row.name}, {"place", name_of(row.place)}, {"bytes", row.n_bytes}});
  const ordered_json result = {
      {"fits", answer.fits()},
      {"refusal", answer.refusal ? ordered_json(answer.refusal->what()) : nullptr},
      {"device", answer.machine.name},
      {"has_gpu", request.has_gpu},
      {"family", model.family},
      {"task", answer.config.text("task")},
      {"n_parameters", model.n_params()},
      {"n_trained_parameters", model.n_trainable_params()},
      {"n_blocks", model.blocks.size()},
      {"dtype", name_of(model.compute)},
      {"max_length", request.max_length},
      {"train_batch_size", request.train_batch_size},
      {"micro_batch_size", plan.micro_batch_size},
      {"n_micro_batches", plan.n_micro / plan.shape.ranks.sharing.n_ranks()},
      {"accumulation_order",
       plan.shape.order == AccumulationOrder::vertical ? "vertical" : "horizontal"},
      {"n_weight_slots", plan.shape.n_weight_slots},
      {"why", plan.why},
      {"rows", rows},
      {"gpu_bytes", request.has_gpu ? plan.layout.n_bytes[Place::device] : int64_t{0}},
      {"host_bytes", host_bytes_of(plan, request.has_gpu)},
      {"n_gpus", request.world},
      {"n_gpus_of_host", std::max(1, request.n_per_host)},
      {"gpu_shares", plan.shape.ranks.shares},
      {"pinned", pinning_json(plan, request)},
      {"gpu_budget_bytes",
       request.has_gpu ? ordered_json(gpu_budget_of(request, plan.shape)) : nullptr},
      {"host_budget_bytes", request.host_budget_bytes},
      {"host_reserved_bytes", request.host_reserved_bytes},
      {"gpu_reserved_bytes", request.has_gpu ? ordered_json(request.gpu_reserved_bytes) : nullptr},
      {"is_reserve_assumed", request.is_reserve_assumed},
      {"n_resident_blocks", plan.n_resident},
      {"nvme", answer.nvme ? nvme_json(*answer.nvme) : nullptr},
      {"time", plan_time_json(answer)},
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

void print(const PlanAnswer& answer, const config::CommandLine& command) {
  if (!answer.plan) return;
  command.wants_json ? print_json(answer) : print_text(answer, command.is_verbose);
}

/** "128GiB", as an option takes it. */
std::string bytes_word(int64_t n_bytes) {
  return n_bytes % kGiB == 0 ? fmt::format("{}GiB", n_bytes / kGiB) : fmt::format("{}", n_bytes);
}

void write_trace(const std::string& file, const PlanAnswer& answer) {
  if (!answer.request.machine)
    throw Error(Fault::usage, "plan.simulate", "too little is known of what the machine can do",
                "run `ferry doctor` first, or give --machine, for example 2080ti-11g");
  write_chrome_trace(
      file,
      simulate_plan(answer.model, answer.request, *answer.plan, /*keeps_actions=*/true).actions);
}

}  // namespace

int run_plan(Arguments arguments) {
  const auto command = read_settings("plan", arguments);
  if (!command) return 0;
  if (!command->config.maybe_text("machine"))
    if (const std::string note = service::note_of_smaller_machine(*command); !note.empty())
      log_line(note);
  if (!command->config.maybe_text("machine"))
    ensure_nvme_rates(nvme_settings(command->config).directories, log_line);
  if (const config::PresetHead& head = command->head;
      !head.card.empty() && !command->config.maybe_text("machine"))
    log_line(
        fmt::format("this is the plan for this machine; for the preset's card add --machine "
                    "{}{}",
                    head.card,
                    head.host_memory_bytes
                        ? fmt::format(" --host-memory {}", bytes_word(*head.host_memory_bytes))
                        : ""));
  provide_inputs(command->config, command->config.text("dataset").empty()
                                      ? service::ModelNeed::shape
                                      : service::ModelNeed::tokens);
  const PlanAnswer answer = service::Planner().answer(command->config, {.tell = log_line});
  if (const auto file = answer.config.maybe_text("simulate"); file && !answer.refusal)
    write_trace(*file, answer);
  print(answer, *command);
  try {
    if (answer.refusal) throw Error(*answer.refusal);
    if (answer.disk.free_bytes) check_disk(answer.disk.need, answer.disk.directory);
  } catch (const Error& error) {
    if (!command->wants_json || !answer.plan) throw;
    log_line(fmt::format("ferry: {}", error.what()));  // the answer has said so as JSON
    return error.exit_code();
  }
  return 0;
}

}  // namespace ferry::cli
