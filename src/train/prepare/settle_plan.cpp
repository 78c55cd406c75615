#include "src/train/prepare/settle_plan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/print.h"
#include "src/base/process/out_of_memory.h"
#include "src/engine/step_time.h"
#include "src/request/run_plan.h"
#include "src/runs/logs/wall_time.h"
#include "src/term/terminal.h"
#include "src/train/control/events.h"
#include "src/train/prepare/batches.h"
#include "src/train/prepare/run_store.h"

namespace ferry {
namespace {

/** The share that the cost model's step of typical micro-batches has of its step of these. */
double share_of_typical(const Job& job, std::span<const HostBatch> step) {
  const PlanRequest& request = job.open_plan.value().request;
  int64_t n_tokens = 0;
  for (const HostBatch& batch : step)
    n_tokens += batch.shape.tokens;
  Plan as_it_is = job.plan;
  const Sharing& sharing = job.model.table.sharing;
  as_it_is.n_micro = std::ssize(step) * sharing.n_ranks();
  BatchShape typical = whole_batch(job.model.table, as_it_is.typical);
  typical.tokens = round_up(n_tokens / std::ssize(step), sharing.sp_size);
  as_it_is.typical = sharing.sp_size > 1 ? part_of_tokens(typical, sharing.sp_size) : typical;
  if (as_it_is.typical == job.plan.typical && as_it_is.n_micro == job.plan.n_micro) return 1;
  return simulate_plan(job.model.table, request, job.plan).step_s /
         simulate_plan(job.model.table, request, as_it_is).step_s;
}

/** Nothing where the plan does not fit. */
std::optional<double> seconds_of_step(const Job& job) {
  try {
    RunStore store(fmt::format("choosing-{}", ::getpid()));
    const auto session = open_session(job, store);
    StepBatches batches(job.model.tokenizer, job.data, job.model.table);
    const std::span<const HostBatch> step = batches.of_step(0);
    return time_of_step(*session, step) * share_of_typical(job, step);
  } catch (const Error& error) {
    if (error.fault() != Fault::does_not_fit) throw;
  } catch (const std::exception& error) {
    if (!out_of_memory(error)) throw;
    keep_memory_reserve();
  }
  return std::nullopt;
}

/** Seconds that the run is promised to take. */
double promised_seconds(const Job& job) {
  const double all_s = job.plan.predicted->step_s * static_cast<double>(job.steps.total);
  const auto most_s = static_cast<double>(job.config.integer("max_time"));
  return most_s > 0 ? std::min(all_s, most_s) : all_s;
}

/** A GPU's step is promised within some percent: where it takes twice as long, another program has
 * the card. */
bool is_undisturbed(const LearntStep& step) {
  constexpr double kDoubt = 2;
  return step.step_s < kDoubt * step.predicted_s && step.predicted_s < kDoubt * step.step_s;
}

/** In the machine's profile, if it is still the one that the steps were predicted by. */
void keep_learnt(const std::vector<LearntStep>& steps, const PlanRequest& request) {
  if (steps.empty()) return;
  try {
    change_machine_profile([&] {
      auto profile = profile_of_this_machine("");  // anew: others store, too
      if (!profile || profile->source != request.machine->source)
        return std::optional<MachineProfile>();
      for (const LearntStep& step : steps)
        if (!request.has_gpu || is_undisturbed(step)) put_learnt(*profile, step);
      return profile;
    });
  } catch (const Error& error) {
    log_line(fmt::format("the times of these plans could not be kept: {}", error.what()));
  }
}

}  // namespace

void settle_plan(Job& job) {
  if (job.config.text("measure_plans") == "auto" && job.plan.predicted) {
    const PlanRequest request = job.open_plan.value().request;
    ChoosingOptions options = {.run_s = promised_seconds(job), .now = runs::now_in_words()};
    options.begin = [](double most_s) {
      log_line(
          fmt::format("timing a step of plans that are promised nearly the same time, in about {} "
                      "(measure_plans = off leaves that out) ...",
                      term::format_duration(most_s)));
    };
    options.next = [](const ChoosingProgress& progress, const Plan& plan) {
      log_line(fmt::format("{}: {}", words_of(progress), plan.why));
      tell_event("choosing", {{"n", progress.n},
                              {"n_most", progress.n_most},
                              {"why", plan.why},
                              {"promised_seconds", plan.predicted->step_s}});
    };
    options.time_step = [&](const Plan& plan) {
      const auto start = std::chrono::steady_clock::now();
      take_plan(job, plan);
      const std::optional<double> step_s = seconds_of_step(job);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      return TimedStep{step_s, took.count()};
    };
    PlanChoice choice = choose_plan(job.model.table, request, job.plan, options);
    keep_learnt(choice.learnt, request);
    if (!choice.tried.empty()) log_line(fmt::format("{}: {}", kChosen, choice.plan.why));
    job.tried = std::move(choice.tried);
    take_plan(job, std::move(choice.plan));
  }
  close_plan(job);
}

}  // namespace ferry
