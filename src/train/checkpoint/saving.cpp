#include "src/train/checkpoint/saving.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/process/out_of_memory.h"

namespace ferry {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/** A run that goes on from its last step on a drive may have no checkpoint of it. */
bool is_saved(int64_t step, const std::filesystem::path& run) {
  return step == 0 || runs::find_checkpoint(run, step);
}

}  // namespace

Saving::Saving(Session& session,
               const Job& job,
               runs::RunDirectory& run,
               runs::MetricsLog& metrics,
               const BestModel& best,
               term::Progress& progress)
    : session_(session),
      job_(job),
      run_(run),
      metrics_(metrics),
      best_(best),
      progress_(progress),
      saver_(session, job, run.path(), [&metrics] { metrics.sync(); }),
      strategy_(job.config.text("save_strategy")),
      begun_step_(is_saved(session.n_steps(), run.path()) ? session.n_steps() : -1) {
  if (!job.config.is_auto("save_steps")) every_.emplace(job.config, "save_steps", job.steps.total);
}

/** The final model will be this one, unless a better one comes. */
bool Saving::is_best() const {
  return metrics_.last_evaluation_step() == session_.n_steps() &&
         is_best_so_far(session_.n_steps());
}

/** Before the first evaluation no step is. */
bool Saving::is_best_so_far(int64_t step) const {
  if (!best_.is_loaded_at_end()) return false;
  const std::vector<int64_t> ranking = best_.ranking();
  return !ranking.empty() && ranking.front() == step;
}

bool Saving::is_due() const {
  const int64_t step = session_.n_steps();
  if (is_best()) return true;
  if (strategy_ == "no") return false;
  if (step >= job_.steps.total || best_.is_out_of_patience()) return true;
  if (strategy_ == "epoch") return step % job_.steps.per_epoch == 0;
  if (every_) return every_->is_over(step, last_began_);
  constexpr auto kAuto = 30min;
  constexpr double kTimeShare_max = 0.02;
  return Clock::now() - last_began_ >=
         std::max<std::chrono::duration<double>>(kAuto, last_took_ / kTimeShare_max);
}

void Saving::after_step(Control& control) {
  // One that somebody waits for is under way: it will do, unless the run leaves with later steps.
  const bool is_asked = control.saves() && (control.leaves() || !is_asked_for_);
  if (session_.n_steps() == begun_step_) return after_dropped_step(control, is_asked);
  if (is_asked) is_asked_for_ = false;  // all who wait get the one that begins now
  const bool begins = is_asked || is_due();
  if (auto outcome = begins ? saver_.await_outcome() : saver_.outcome()) tell(*outcome, control);
  if (begins) begin(is_asked);
}

/** The session is as the last checkpoint has it, or as it was at step 0. */
void Saving::after_dropped_step(Control& control, bool is_asked) {
  if (auto outcome = saver_.outcome()) tell(*outcome, control);
  if (!is_asked) return;
  if (has_failed_) return begin(is_asked);
  is_asked_for_ = true;
  if (saver_.is_writing()) return;
  is_asked_for_ = false;
  control.tell_saved(true, begun_step_ == 0
                               ? "no step was taken: there is nothing to save"
                               : fmt::format("checkpoint-{} is complete", begun_step_));
}

void Saving::begin(bool is_asked) {
  saver_.begin(best_.is_loaded_at_end() ? best_.ranking() : std::vector<int64_t>());
  begun_step_ = session_.n_steps();
  is_asked_for_ = is_asked;
  last_began_ = Clock::now();
}

void Saving::finish(Control& control, bool is_interrupted) {
  run_.set_phase(runs::Phase::saving);
  const auto outcome = saver_.await_outcome();
  if (!outcome) return;
  tell(*outcome, control);
  if (outcome->failure && is_interrupted) std::rethrow_exception(outcome->failure);
}

void Saving::tell(const CheckpointSaver::Outcome& outcome, Control& control) {
  last_took_ = std::chrono::duration<double>(outcome.seconds);
  has_failed_ = outcome.failure != nullptr;
  std::string text = fmt::format("checkpoint-{}", outcome.step);
  if (outcome.failure) {
    run_.check();
    const auto all = runs::complete_checkpoints(run_.path());
    try {
      std::rethrow_exception(outcome.failure);
    } catch (const std::exception& e) {
      const auto no_memory = out_of_memory(e);
      text = fmt::format("{} could not be written, {}: {}", text,
                         all.empty() ? "and there is none before it"
                                     : fmt::format("the last is {}", all.back().path.string()),
                         no_memory ? no_memory->what() : e.what());
    }
    if (is_best_so_far(outcome.step))
      text += "; it is of the best evaluation so far, whose model is lost with it";
    progress_.log_line(text);
  } else {
    text = fmt::format("{} is complete", text);
    metrics_.append({{"step", outcome.step},
                     {"save_seconds", outcome.seconds},
                     {"save_bytes", outcome.n_bytes}});
  }
  if (std::exchange(is_asked_for_, false)) control.tell_saved(!outcome.failure, text);
}

}  // namespace ferry
