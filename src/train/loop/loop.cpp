#include "src/train/loop/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "offload/device/device.h"
#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/runs/logs/metrics_log.h"
#include "src/term/progress.h"
#include "src/train/checkpoint/saving.h"
#include "src/train/control/control.h"
#include "src/train/control/events.h"
#include "src/train/control/room.h"
#include "src/train/evaluate/evaluating.h"
#include "src/train/generate/sampling.h"
#include "src/train/loop/tracing.h"
#include "src/train/prepare/batches.h"

namespace ferry {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void refuse_diverged(const std::string& which,
                                  const Job& job,
                                  int64_t step,
                                  double loss) {
  throw Error(Fault::diverged, "train.step",
              fmt::format("the gradients of {} were not finite (step {}, loss {:.4g})", which,
                          step + 1, loss),
              job.model.table.compute == DType::f16
                  ? "lower learning_rate, or use dtype = bf16 or fp32"
                  : "lower learning_rate, or warm up longer");
}

/** fp16 halves its loss scale on every overflow, so 24 in a row bring the highest to 1. Without a
 * scale, a few are enough. */
void check_divergence(const StepReport& report, const Job& job, int64_t step) {
  const int64_t patience = job.model.table.compute == DType::f16 ? 25 : 5;
  if (report.n_skipped_in_a_row < patience) return;
  refuse_diverged(fmt::format("{} steps in a row", patience), job, step, report.loss);
}

/** A run too short for the patience above must not save a model that no step changed. */
void check_any_update(const SessionState& state, const Job& job, double loss) {
  if (state.optimizer.n_updates > 0) return;
  refuse_diverged("all steps", job, job.steps.total - 1, loss);
}

/** The cost of a step. */
struct StepCost {
  int64_t n_tokens = 0;
  double seconds = 0;
  int64_t host_bytes = 0;    ///< memory of this process, after it
  int64_t pinned_bytes = 0;  ///< of these; 0: there is no GPU
  double tokens_per_second() const {
    return static_cast<double>(n_tokens) / std::max(seconds, 1e-9);
  }
};

/** True where a line is due: every logging_steps, and at the end of the run. */
bool is_line_due(const Job& job, int64_t step) {
  return (step + 1) % job.config.integer("logging_steps") == 0 || step + 1 == job.steps.total;
}

/** True where the loss is a mean that ends: with each line that is due, and with each tenth of the
 * run, which the progress shows and train.log has. */
bool is_mean_due(const Job& job, int64_t step) {
  const bool is_tenth = 10 * (step + 1) / job.steps.total > 10 * step / job.steps.total;
  return is_line_due(job, step) || is_tenth;
}

/** `mean_loss`: since the last line, as transformers logs it. */
void log_step(const Job& job,
              const StepReport& report,
              int64_t step,
              double mean_loss,
              bool is_told,
              const StepCost& cost,
              const Metrics& of_answers,
              term::Progress& progress) {
  std::string values =
      fmt::format("loss {:.4f}  lr {:.2e}  grad {:.2f}{}  {:.0f} tokens/s  {}", mean_loss,
                  report.learning_rate, report.grad_norm, report.skipped ? "  skipped" : "",
                  cost.tokens_per_second(), format_bytes(cost.host_bytes));
  constexpr size_t kShown = 2;  // the share of right ones, and by how much
  for (const auto& [name, value] : std::span(of_answers).first(std::min(kShown, of_answers.size())))
    values += fmt::format("  {} {:.3f}", name, value);
  progress.update(step + 1, values, is_told);
  if (is_told) progress.log_line(fmt::format("step {}/{}: {}", step + 1, job.steps.total, values));
  if (!report.skipped && !std::isfinite(report.grad_norm))
    progress.log_line(fmt::format(
        "step {}: the gradients are not finite; without clipping, blocks that have such gradients "
        "stay as they are and the others are updated",
        step + 1));
  if (report.skipped)
    progress.log_line(fmt::format("step {}: the gradients are not finite{}; the step is skipped",
                                  step + 1,
                                  job.model.table.compute == DType::f16
                                      ? fmt::format(" at loss scale {:g}", report.loss_scale)
                                      : ""));
}

/** What the step's pairs of answers have come to, as an evaluation tells it; nothing of other
 * tasks, and where other processes have a part of the pairs. */
Metrics metrics_of_answers(Session& session, const Job& job, const StepBatches& batches) {
  if (!job.data.task->compares_answers() || job.team) return {};
  const auto scorer = job.data.task->scorer(job.data.train, job.model.tokenizer);
  int micro = 0;
  for (const MicroBatch& batch : batches.micro_batches())
    scorer->add(batch, session.outputs_of_step(micro++), {});
  return scorer->metrics(0);
}

/** One step's line of metrics.jsonl. */
nlohmann::ordered_json metrics_of(const Job& job,
                                  const StepReport& report,
                                  int64_t step,
                                  std::optional<double> mean_loss,
                                  int64_t n_tokens_seen,
                                  const StepCost& cost) {
  nlohmann::ordered_json line;
  line["step"] = step + 1;
  line["epoch"] = job.steps.epochs(step + 1);
  line["loss"] = report.loss;
  if (mean_loss) line["loss_mean"] = *mean_loss;
  line["grad_norm"] = report.grad_norm;
  line["learning_rate"] = report.learning_rate;
  line["num_input_tokens_seen"] = n_tokens_seen;
  if (cost.seconds > 0) {  // else they went with the process
    line["train_tokens_per_second"] = cost.tokens_per_second();
    line["step_ms"] = cost.seconds * 1e3;
    line["host_bytes"] = cost.host_bytes;
    if (cost.pinned_bytes > 0) line["host_bytes_pinned"] = cost.pinned_bytes;
  }
  if (report.skipped) line["skipped"] = true;
  if (job.model.table.compute == DType::f16) line["loss_scale"] = report.loss_scale;
  return line;
}

/** The step that a run goes on from may lack its line: its process ended when the states were safe.
 */
void append_last_line(const Job& job,
                      int64_t n_steps,
                      StepBatches& batches,
                      runs::MetricsLog& metrics) {
  if (!job.last_report || std::ssize(metrics.losses()) >= n_steps) return;
  const int64_t step = n_steps - 1;
  batches.of_step(step);
  const StepReport& report = *job.last_report;
  const double mean_loss = metrics.mean_loss_with(report.loss);
  metrics.append(metrics_of(
      job, report, step, is_mean_due(job, step) ? std::optional(mean_loss) : std::nullopt,
      metrics.n_tokens() + batches.n_tokens(), {.n_tokens = batches.n_tokens()}));
}

/** Option max_time: where the steps have taken so long, those before a resume too, this was the
 * run's last one. What it does at its end follows from Steps::total. */
void end_after_max_time(Job& job,
                        int64_t n_steps,
                        const runs::MetricsLog& metrics,
                        term::Progress& progress) {
  const int64_t most_s = job.config.integer("max_time");
  if (most_s == 0 || n_steps == 0 || n_steps >= job.steps.total) return;
  if (metrics.step_seconds() < static_cast<double>(most_s)) return;
  progress.log_line(fmt::format("max_time of {} is over: step {} of {} is the last",
                                term::format_duration(static_cast<double>(most_s)), n_steps,
                                job.steps.total));
  job.steps.total = n_steps;
}

/** `ranking`: steps of evaluations, the best first; the session is as after `n_steps`. */
std::optional<BestOutcome> find_best(const std::filesystem::path& run,
                                     const std::vector<int64_t>& ranking,
                                     int64_t n_steps) {
  for (const int64_t step : ranking) {
    BestOutcome best = {.best_step = ranking.front(), .step = step, .checkpoint = {}};
    if (step == n_steps) return best;
    best.checkpoint = runs::find_checkpoint(run, step);
    if (best.checkpoint) return best;
  }
  return std::nullopt;
}

}  // namespace

TrainingResult train(Session& session, Job& job, runs::RunDirectory& run) {
  TrainingResult result;
  StepBatches batches(job.model.tokenizer, job.data, job.model.table);
  runs::MetricsLog metrics(run.path(), session.n_steps(),
                           /*with_tensorboard=*/job.config.text("report_to") == "tensorboard");
  metrics.listen(tell_metrics);
  term::Progress progress(stderr, term::detect_terminal(2), "training", job.steps.total, "step",
                          session.n_steps());
  Control control(session, job.config, job.steps.total, run, progress);
  Evaluating evaluating(session, job, run, metrics, progress);
  Sampling sampling(session, job, run, progress);
  Saving saving(session, job, run, metrics, evaluating.best(), progress);
  Tracing tracing(session, job.config, job.plan.shape, metrics, progress);

  append_last_line(job, session.n_steps(), batches, metrics);
  // A run that was killed between its end and its result ends here again.
  end_after_max_time(job, session.n_steps(), metrics, progress);
  // A run that was stopped or killed in the middle of an evaluation, or of samples, begins with it.
  if (session.n_steps() > 0) evaluating.after_step(control);
  sampling.after_step(control, evaluating.is_last_step());
  do {
    control.attend();
    saving.after_step(control);  // of the best evaluation there must be a checkpoint
  } while (control.is_paused());
  run.set_phase(runs::Phase::training);
  const bool pins = pins_memory(job);
  while (!evaluating.is_last_step() && !control.leaves()) {
    const int64_t step = session.n_steps();
    const auto start = Clock::now();
    // ---- the step
    const std::span<const HostBatch> micro_batches = batches.of_step(step);
    const std::optional<StepReport> report =
        session.step_unless(micro_batches, [&] { return control.interrupts(); });
    // ---- diagnostics only from here on
    if (report) {
      const StepCost cost = {.n_tokens = batches.n_tokens(),
                             .seconds = seconds_since(start),
                             .host_bytes = process_bytes(),
                             .pinned_bytes = pins ? session.device().pinned_bytes().pinned : 0};
      result.seconds += cost.seconds;
      result.n_tokens += cost.n_tokens;
      result.n_skipped += report->skipped;
      ++result.n_steps;
      const bool is_told = is_line_due(job, step);
      const double mean_loss = metrics.mean_loss_with(report->loss);
      const Metrics of_answers = is_told ? metrics_of_answers(session, job, batches) : Metrics();
      nlohmann::ordered_json line = metrics_of(
          job, *report, step, is_mean_due(job, step) ? std::optional(mean_loss) : std::nullopt,
          metrics.n_tokens() + cost.n_tokens, cost);
      for (const auto& [name, value] : of_answers)
        line[name] = value;
      metrics.append(std::move(line));
      end_after_max_time(job, session.n_steps(), metrics, progress);
      if (const auto failure = metrics.take_failure()) progress.log_line(*failure);
      check_divergence(*report, job, step);
      log_step(job, *report, step, mean_loss, is_told, cost, of_answers, progress);
      if (session.n_steps() == job.steps.total)
        check_any_update(session.state(), job, report->loss);
      tracing.after_step();
      evaluating.after_step(control);
      sampling.after_step(control, evaluating.is_last_step());
    }  // else it was dropped for a pause or the end, and comes again
    do {
      control.attend();
      saving.after_step(control);
    } while (control.is_paused());
    sampling.when_asked(control);
  }
  tracing.finish();
  if (job.machine.plan.has_gpu) result.gpu_bytes = cuda_driver_used_bytes();
  if (control.leaves()) saving.after_step(control);  // a signal may have come after it
  const bool is_done = evaluating.is_done() && sampling.is_done(evaluating.is_last_step());
  result.is_interrupted = control.leaves() && !is_done;
  result.sample_seconds = sampling.seconds();
  saving.finish(control, result.is_interrupted);
  progress.finish();
  if (result.is_interrupted)
    metrics.sync();
  else
    result.is_interrupted = !write_when_there_is_room(
        [&] {
          metrics.write_all();
          sampling.write_all();
        },
        run);
  result.is_saved = runs::find_checkpoint(run.path(), session.n_steps()).has_value();
  if (!result.is_interrupted) control.return_to_gpu();  // the model is read from there
  result.evaluation = evaluating.take_last();
  result.losses = metrics.losses();
  if (evaluating.best().is_loaded_at_end())
    result.best = find_best(run.path(), evaluating.best().ranking(), session.n_steps());
  return result;
}

}  // namespace ferry
