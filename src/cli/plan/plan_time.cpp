#include "src/cli/plan/plan_time.h"
#include "src/base/print.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/plan/cost/rates.h"
#include "src/request/ranks.h"
#include "src/term/progress.h"

namespace ferry::cli {

using nlohmann::ordered_json;
using service::MemoryGain;
using service::PlanTime;
using service::ResourceTime;

namespace {

/** The tokens that GPT-3 was trained on. */
constexpr double kPretraining_tokens = 300e9;

/** The time on one GPU, and whether more of them help. */
void print_speedup(const PlanTime& time, const PlanRequest& request) {
  constexpr double kHelps = 1.1;
  const double times = *time.one_rank_step_s / time.step_s;
  const char* const ranks = request.has_gpu ? "GPU" : "process";
  fmt::print("One {} would take {:.1f} ms a step: {} are {:.2f} times as fast{}.\n", ranks,
             1e3 * *time.one_rank_step_s, request.world, times,
             times < kHelps ? ", so more of them do not help here" : "");
}

/** The part of a step that each GPU of a host has, where they are unlike. */
void print_gpus(const PlanTime& time, const term::Terminal& terminal) {
  const int bar_width = term::bar_width(terminal);
  term::Table table(
      {{"GPU"}, {"share", term::Align::right}, {"computes", term::Align::right}, {""}});
  for (size_t i = 0; i < time.gpus.size(); ++i) {
    const service::PlannedGpu& gpu = time.gpus[i];
    table.add_row({fmt::format("{}: {}", i, gpu.name), fmt::format("{}", gpu.share),
                   fmt::format("{:.1f} ms", 1e3 * gpu.compute_s),
                   term::bar(gpu.compute_s, time.step_s, bar_width, terminal)});
  }
  fmt::print("{}\n", table.text(terminal));
}

}  // namespace

void print_plan_time(const service::PlanAnswer& answer,
                     bool is_verbose,
                     const term::Terminal& terminal) {
  const PlanMachine& machine = answer.machine.machine;
  if (!answer.time && machine.profile) {
    fmt::print("How long it takes is not known: the machine's profile lacks {}.\n\n",
               missing_figures(*machine.profile, machine.has_gpu, answer.model));
    return;
  }
  if (!answer.time) {
    fmt::print(
        "How long it takes is not known: run `ferry doctor` once to measure this machine, or give "
        "--machine.\n\n");
    return;
  }
  const PlanTime& time = *answer.time;
  const PlanRequest& request = answer.request;
  constexpr double kWorthShowing_s = 0.05e-3;  // less is printed as 0.0 ms
  const int bar_width = term::bar_width(terminal);
  term::Table table({{"a step"}, {"time", term::Align::right}, {""}});
  for (const ResourceTime& resource : time.resources) {
    if (resource.busy_s < kWorthShowing_s) continue;
    if (!request.has_gpu && resource.is_copy()) continue;
    table.add_row({resource.name, fmt::format("{:.1f} ms", 1e3 * resource.busy_s),
                   fmt::format("{}{}", term::bar(resource.busy_s, time.step_s, bar_width, terminal),
                               resource.queue == time.binding ? "  binds" : "")});
  }
  const std::optional<double>& least = time.least_samples_per_s;
  table.add_rule();
  table.add_row({"in all", fmt::format("{:.1f} ms", 1e3 * time.step_s),
                 fmt::format("{}{:.1f} samples/s", least ? fmt::format("{:.1f} to ", *least) : "",
                             time.samples_per_s)});
  fmt::print("{}\n", table.text(terminal));
  if (!time.gpus.empty()) print_gpus(time, terminal);
  constexpr int64_t kSteps = 1000;  // to say something of, where the run has no end yet
  const int64_t n = answer.texts.n_steps.value_or(kSteps);
  const auto times = static_cast<double>(n);
  fmt::print("With texts of {:.0f} tokens{}: {:.0f} tokens/s; {} take{} {}.\n",
             time.tokens_per_text, answer.texts.mean_tokens ? " on average" : "", time.tokens_per_s,
             answer.texts.n_steps ? fmt::format("the run's {} step{}", n, n == 1 ? "" : "s")
                                  : fmt::format("{} such steps", n),
             n == 1 ? "s" : "", term::format_duration(times * time.step_s));
  if (const bool is_from_scratch = !answer.config.text("config_name").empty();
      request.world > 1 && is_from_scratch && answer.model.head == HeadKind::causal_lm)
    fmt::print("{:.0f} G tokens would take {}.\n", kPretraining_tokens / 1e9,
               term::format_duration(kPretraining_tokens / time.tokens_per_s));
  if (time.one_rank_step_s) print_speedup(time, request);
  if (time.fewer_gpus)
    ferry::print(fmt::format("{}.\n", comparison_text(*time.fewer_gpus, request, time.step_s,
                                                      ranks_of(answer.config).gpus)));
  if (!answer.plan->timed.empty())
    fmt::print("A step of such a plan was timed here on {}: the time in all is that.\n",
               answer.plan->timed);
  if (request.generation.n_sequences > 0)
    fmt::print("Samples come on top: ferry train measures them before its first step.\n");
  if (time.step_joules_at_most)
    fmt::print("The GPU{} at most {:.1f} Wh for them.\n", request.world > 1 ? "s take" : " takes",
               times * *time.step_joules_at_most / 3600);
  for (const MemoryGain& gain : time.gains)
    fmt::print("With 1 GiB more of {} a step would take {:.1f} ms.\n", gain.what,
               1e3 * gain.step_s);
  if (time.gains.empty() && request.has_gpu)
    fmt::print("1 GiB more of GPU or host memory would not make it faster by 1 %.\n");
  if (least)
    fmt::print(
        "Published figures of this card disagree: the lower rate is that of the machine {}-low, "
        "all "
        "else is said of the higher one.\n",
        request.machine->name);
  ferry::print(fmt::format("Figures of the machine: {}.\n", request.machine->source));
  const std::vector<std::string>& assumptions = request.machine->assumptions;
  if (!assumptions.empty() && !is_verbose)
    fmt::print("They rest on {} assumption{}; --verbose says which.\n", assumptions.size(),
               assumptions.size() == 1 ? "" : "s");
  if (is_verbose)
    for (const std::string& assumption : assumptions)
      ferry::print(fmt::format("  assumed: {}\n", assumption));
  fmt::print("\n");
}

ordered_json plan_time_json(const service::PlanAnswer& answer) {
  if (!answer.time) return nullptr;
  const PlanTime& time = *answer.time;
  const MachineProfile& machine = *answer.request.machine;
  ordered_json json = {{"step_s", time.step_s},
                       {"samples_per_second", time.samples_per_s},
                       {"tokens_per_second", time.tokens_per_s},
                       {"tokens_per_text", time.tokens_per_text},
                       {"binding", name_of(time.binding)}};
  if (time.least_samples_per_s) json["samples_per_second_at_least"] = *time.least_samples_per_s;
  json["timed"] = answer.plan->timed.empty() ? nullptr : ordered_json(answer.plan->timed);
  if (time.run_s) {
    json["n_steps"] = *answer.texts.n_steps;
    json["run_s"] = *time.run_s;
  }
  for (const ResourceTime& resource : time.resources)
    json[resource.key] = resource.busy_s;
  if (time.one_rank_step_s) json["one_gpu_step_s"] = *time.one_rank_step_s;
  for (const service::PlannedGpu& gpu : time.gpus)
    json["gpus"].push_back({{"name", gpu.name},
                            {"share", gpu.share},
                            {"compute_s", gpu.compute_s},
                            {"busiest_s", gpu.busy_s},
                            {"budget_bytes", gpu.budget_bytes}});
  if (time.fewer_gpus)
    json["fewer_gpus"] = {{"gpus", time.fewer_gpus->gpus}, {"step_s", time.fewer_gpus->step_s}};
  json["gpu_joules_at_most"] =
      time.step_joules_at_most ? ordered_json(*time.step_joules_at_most) : nullptr;
  json["with_one_more_gib"] = ordered_json::object();
  for (const MemoryGain& gain : time.gains)
    json["with_one_more_gib"][gain.what] = gain.step_s;
  json["machine"] = machine.name;
  json["source"] = machine.source;
  json["assumptions"] = machine.assumptions;
  return json;
}

}  // namespace ferry::cli
