#include "src/train/loop.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "src/base/error.h"
#include "src/term/progress.h"
#include "src/train/batches.h"

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
              job.model.compute == DType::f16 ? "lower learning_rate, or use dtype = bf16 or fp32"
                                              : "lower learning_rate, or warm up longer");
}

/** fp16 halves its loss scale on every overflow, so 24 in a row bring the highest to 1. Without a
 * scale, a few are enough. */
void check_divergence(const StepReport& report, const Job& job, int64_t step) {
  const int64_t patience = job.model.compute == DType::f16 ? 25 : 5;
  if (report.n_skipped_in_a_row < patience) return;
  refuse_diverged(fmt::format("{} steps in a row", patience), job, step, report.loss);
}

/** A run too short for the patience above must not save a model that no step changed. */
void check_any_update(const TrainingResult& result, const Job& job) {
  if (job.n_steps == 0 || result.n_skipped < job.n_steps) return;
  refuse_diverged("all steps", job, job.n_steps - 1, result.losses.back());
}

void log_step(const Job& job, const StepReport& report, int64_t step, term::Progress& progress) {
  const std::string values =
      fmt::format("loss {:.4f}  lr {:.2e}  grad {:.2f}{}", report.loss, report.learning_rate,
                  report.grad_norm, report.skipped ? "  skipped" : "");
  progress.update(step + 1, values);
  if ((step + 1) % job.config.integer("logging_steps") == 0)
    progress.say(fmt::format("step {}: {}", step + 1, values));
  if (report.skipped)
    progress.say(fmt::format(
        "step {}: the gradients are not finite{}; the step is skipped", step + 1,
        job.model.compute == DType::f16 ? fmt::format(" at loss scale {:g}", report.loss_scale)
                                        : ""));
}

/** The evaluation after an epoch, or at the end of the run. */
void evaluate_now(Session& session,
                  const Job& job,
                  int64_t step,
                  TrainingResult& result,
                  term::Progress& progress) {
  result.evaluation = evaluate(session, job, /*labelled=*/true);
  std::string line = fmt::format(
      "epoch {:.2f}: eval_loss {:.4f}",
      static_cast<double>(step) / static_cast<double>(job.steps_per_epoch), result.evaluation.loss);
  for (const auto& [name, value] : result.evaluation.metrics)
    line += fmt::format("  {} {:.4f}", name, value);
  progress.say(line);
}

}  // namespace

Promise rehearse(Session& session, const Job& job) {
  StepBatches batches(job);
  Promise promise;
  // The run's first step has the most micro-batches; it comes last, warm, and is timed.
  const auto full = batches.of_step(0);
  for (size_t size = job.token_sizes.size(); size-- > 0;) {
    // The same samples in one micro-batch of this size: as long as the largest, or cut short.
    MicroBatch batch;
    std::vector<int64_t> samples;
    int64_t n_tokens = 0;
    for (int64_t i = 0; i < std::min(job.train.size(), job.split.micro_batch_size); ++i) {
      const auto length = static_cast<int64_t>(job.train.ids(i).size());
      if (n_tokens + length > job.token_sizes[size]) break;
      samples.push_back(i);
      n_tokens += length;
    }
    if (samples.empty()) continue;
    const int64_t only[] = {job.token_sizes[size]};
    collate(job.train, samples, only, pad_id(job), batch, job.max_length);
    if (job.loss == LossKind::masked_lm) mask_tokens(batch, mask_options(job), {});
    const HostBatch one[] = {host_batch(batch, job)};
    session.rehearse(one);
  }
  session.rehearse(full);
  const auto start = Clock::now();
  session.rehearse(full);
  promise.seconds = seconds_since(start) * static_cast<double>(job.n_steps);
  return promise;
}

TrainingResult train(Session& session, const Job& job) {
  TrainingResult result;
  StepBatches batches(job);
  term::Progress progress(stderr, term::detect_terminal(2), "training", job.n_steps);
  const bool evaluates = job.eval.size() > 0 && job.config.text("eval_strategy") == "epoch";

  for (int64_t step = 0; step < job.n_steps; ++step) {
    const auto start = Clock::now();
    // ---- the step
    const std::span<const HostBatch> micro_batches = batches.of_step(step);
    const StepReport report = session.step(micro_batches);
    // ---- diagnostics only from here on
    result.seconds += seconds_since(start);
    result.losses.push_back(report.loss);
    result.n_tokens += batches.n_tokens();
    result.n_skipped += report.skipped;
    check_divergence(report, job, step);
    log_step(job, report, step, progress);
    const bool epoch_ends = (step + 1) % job.steps_per_epoch == 0,
               run_ends = step + 1 == job.n_steps;
    if (job.eval.size() > 0 && (run_ends || (evaluates && epoch_ends)))
      evaluate_now(session, job, step + 1, result, progress);
  }
  progress.finish();
  check_any_update(result, job);
  return result;
}

}  // namespace ferry
