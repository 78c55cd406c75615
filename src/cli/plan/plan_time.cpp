#include "src/cli/plan/plan_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/plan/cost/rates.h"
#include "src/term/progress.h"

namespace ferry::cli {
namespace {

using nlohmann::ordered_json;

struct Resource {
  QueueId queue;
  const char* name;  ///< for people
  const char* key;   ///< of the JSON
};
constexpr Resource kResources[] = {{QueueId::compute, "GPU", "compute_s"},
                                   {QueueId::h2d, "copies to the GPU", "h2d_s"},
                                   {QueueId::d2h, "copies from the GPU", "d2h_s"},
                                   {QueueId::host, "CPU updates", "host_s"}};

/** Tokens of a text: the mean of the data's, or max_length where they are not known. */
double tokens_per_text(const PlanRequest& request, const PlannedTexts& texts) {
  return texts.mean_tokens.value_or(static_cast<double>(request.max_length));
}

double tokens_per_second(const Plan& plan, const PlanRequest& request, const PlannedTexts& texts) {
  return samples_per_second(request, plan) * tokens_per_text(request, texts);
}

/** Most that the GPU takes: its limit for as long as the step lasts. */
double joules_at_most(const Plan& plan, const PlanRequest& request) {
  return request.has_gpu ? request.machine->gpu->power_w * plan.predicted->step_s : 0;
}

}  // namespace

MoreMemory::MoreMemory(const ModelTable& model, const PlanRequest& request)
    : model_(model), request_(request) {
  if (!request.machine || !request.has_gpu) return;
  with_gpu_ = std::async(std::launch::async, [&model, more = request]() mutable {
    more.gpu_budget_bytes += kGiB;
    return find_plan(model, more);
  });
}

std::vector<MoreMemory::Gain> MoreMemory::gains(const Plan& plan) {
  constexpr double kWorthSaying = 0.01;
  std::vector<Gain> found;
  const auto consider = [&](const char* what, const std::optional<Plan>& better) {
    if (better && better->predicted->step_s < plan.predicted->step_s * (1 - kWorthSaying))
      found.push_back({what, better->predicted->step_s});
  };
  if (with_gpu_.valid()) consider("GPU memory", with_gpu_.get());
  if (plan.host_lacking_bytes <= kGiB) {
    PlanRequest more = request_;
    more.host_budget_bytes += kGiB;
    consider("host memory", find_plan(model_, more));
  }
  return found;
}

void print_plan_time(const Plan& plan,
                     const ModelTable& model,
                     const PlanRequest& request,
                     const PlanMachine& machine,
                     const PlannedTexts& texts,
                     MoreMemory& more,
                     bool is_verbose,
                     const term::Terminal& terminal) {
  if (!plan.predicted && machine.profile) {
    fmt::print("How long it takes is not known: the machine's profile lacks {}.\n\n",
               missing_figures(*machine.profile, machine.has_gpu, model));
    return;
  }
  if (!plan.predicted) {
    fmt::print(
        "How long it takes is not known: run `ferry doctor` once to measure this machine, or give "
        "--machine.\n\n");
    return;
  }
  const Simulation& predicted = *plan.predicted;
  constexpr double kWorthShowing_s = 0.05e-3;  // less is printed as 0.0 ms
  const int bar_width = term::bar_width(terminal);
  term::Table table({{"a step"}, {"time", term::Align::right}, {""}});
  for (const Resource& resource : kResources) {
    const double busy_s = predicted.busy_s[static_cast<size_t>(resource.queue)];
    if (busy_s < kWorthShowing_s) continue;
    const bool is_cpu = !request.has_gpu && resource.queue == QueueId::compute;
    // On a CPU nothing is copied but a batch, within the same memory.
    if (!request.has_gpu && !is_cpu && resource.queue != QueueId::host) continue;
    table.add_row({is_cpu ? "CPU" : resource.name, fmt::format("{:.1f} ms", 1e3 * busy_s),
                   fmt::format("{}{}", term::bar(busy_s, predicted.step_s, bar_width, terminal),
                               resource.queue == predicted.binding() ? "  binds" : "")});
  }
  const std::optional<double> least = least_samples_per_second(model, request, plan);
  table.add_rule();
  table.add_row({"in all", fmt::format("{:.1f} ms", 1e3 * predicted.step_s),
                 fmt::format("{}{:.1f} samples/s", least ? fmt::format("{:.1f} to ", *least) : "",
                             samples_per_second(request, plan))});
  fmt::print("{}\n", table.text(terminal));
  constexpr int64_t kSteps = 1000;  // to say something of, where the run has no end yet
  const int64_t n = texts.n_steps.value_or(kSteps);
  const auto times = static_cast<double>(n);
  fmt::print("With texts of {:.0f} tokens{}: {:.0f} tokens/s; {} take{} {}.\n",
             tokens_per_text(request, texts), texts.mean_tokens ? " on average" : "",
             tokens_per_second(plan, request, texts),
             texts.n_steps ? fmt::format("the run's {} step{}", n, n == 1 ? "" : "s")
                           : fmt::format("{} such steps", n),
             n == 1 ? "s" : "", term::format_duration(times * predicted.step_s));
  if (request.generation.n_sequences > 0)
    fmt::print("Samples come on top: ferry train measures them before its first step.\n");
  if (const double joules = joules_at_most(plan, request); joules > 0)
    fmt::print("The GPU takes at most {:.1f} Wh for them.\n", times * joules / 3600);
  const std::vector<MoreMemory::Gain> gains = more.gains(plan);
  for (const MoreMemory::Gain& gain : gains)
    fmt::print("With 1 GiB more of {} a step would take {:.1f} ms.\n", gain.what,
               1e3 * gain.step_s);
  if (gains.empty() && request.has_gpu)
    fmt::print("1 GiB more of GPU or host memory would not make it faster by 1 %.\n");
  if (least)
    fmt::print(
        "Published figures of this card disagree: the lower rate is that of the machine {}-low, "
        "all "
        "else is said of the higher one.\n",
        request.machine->name);
  fmt::print("Figures of the machine: {}.\n", request.machine->source);
  const std::vector<std::string>& assumptions = request.machine->assumptions;
  if (!assumptions.empty() && !is_verbose)
    fmt::print("They rest on {} assumption{}; --verbose says which.\n", assumptions.size(),
               assumptions.size() == 1 ? "" : "s");
  if (is_verbose)
    for (const std::string& assumption : assumptions)
      fmt::print("  assumed: {}\n", assumption);
  fmt::print("\n");
}

ordered_json plan_time_json(const Plan& plan,
                            const ModelTable& model,
                            const PlanRequest& request,
                            const PlannedTexts& texts,
                            MoreMemory& more) {
  if (!plan.predicted) return nullptr;
  ordered_json json = {{"step_s", plan.predicted->step_s},
                       {"samples_per_second", samples_per_second(request, plan)},
                       {"tokens_per_second", tokens_per_second(plan, request, texts)},
                       {"tokens_per_text", tokens_per_text(request, texts)},
                       {"binding", name_of(plan.predicted->binding())}};
  if (const auto least = least_samples_per_second(model, request, plan))
    json["samples_per_second_at_least"] = *least;
  if (texts.n_steps) {
    json["n_steps"] = *texts.n_steps;
    json["run_s"] = static_cast<double>(*texts.n_steps) * plan.predicted->step_s;
  }
  for (const Resource& resource : kResources)
    json[resource.key] = plan.predicted->busy_s[static_cast<size_t>(resource.queue)];
  const double joules = joules_at_most(plan, request);
  json["gpu_joules_at_most"] = joules > 0 ? ordered_json(joules) : nullptr;
  json["with_one_more_gib"] = ordered_json::object();
  for (const MoreMemory::Gain& gain : more.gains(plan))
    json["with_one_more_gib"][gain.what] = gain.step_s;
  json["machine"] = request.machine->name;
  json["source"] = request.machine->source;
  json["assumptions"] = request.machine->assumptions;
  return json;
}

}  // namespace ferry::cli
