#include "src/train/saving.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace ferry {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Saving::Saving(Session& session,
               const Job& job,
               runs::RunDirectory& run,
               runs::MetricsLog& metrics,
               term::Progress& progress)
    : session_(session),
      job_(job),
      run_(run),
      metrics_(metrics),
      progress_(progress),
      saver_(session, job, run.path()),
      strategy_(job.config.text("save_strategy")) {
  if (!job.config.is_auto("save_steps"))
    every_ = std::max<int64_t>(1, job.config.steps("save_steps", job.n_steps));
}

bool Saving::is_due() const {
  const int64_t step = session_.n_steps();
  if (strategy_ == "no") return false;
  if (step == job_.n_steps) return true;
  if (strategy_ == "epoch") return step % job_.steps_per_epoch == 0;
  if (every_ > 0) return step % every_ == 0;
  constexpr auto kAuto = 30min;
  constexpr double kTimeShare_max = 0.02;
  return Clock::now() - last_began_ >=
         std::max<std::chrono::duration<double>>(kAuto, last_took_ / kTimeShare_max);
}

void Saving::after_step(bool at_once) {
  const bool begins = at_once || is_due();
  if (auto outcome = begins ? saver_.await_outcome() : saver_.outcome()) tell(*outcome);
  if (!begins) return;
  metrics_.sync();  // a checkpoint has the lines of all its steps, whatever happens to the power
  saver_.begin();
  last_began_ = Clock::now();
}

void Saving::finish() {
  run_.set_phase(runs::Phase::saving);
  const auto outcome = saver_.await_outcome();
  if (!outcome) return;
  if (outcome->failure) std::rethrow_exception(outcome->failure);
  tell(*outcome);
}

void Saving::tell(const CheckpointSaver::Outcome& outcome) {
  last_took_ = std::chrono::duration<double>(outcome.seconds);
  if (!outcome.failure)
    return metrics_.append({{"step", outcome.step},
                            {"save_seconds", outcome.seconds},
                            {"save_bytes", outcome.n_bytes}});
  const auto all = runs::complete_checkpoints(run_.path());
  try {
    std::rethrow_exception(outcome.failure);
  } catch (const std::exception& e) {
    progress_.say(fmt::format(
        "checkpoint-{} could not be written; training goes on, {}\n{}", outcome.step,
        all.empty() ? "without a checkpoint so far"
                    : fmt::format("the last checkpoint is {}", all.back().path.string()),
        e.what()));
  }
}

}  // namespace ferry
