#include "src/train/evaluate/evaluating.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace ferry {

Evaluating::Evaluating(Session& session,
                       const Job& job,
                       runs::RunDirectory& run,
                       runs::MetricsLog& metrics,
                       term::Progress& progress)
    : session_(session),
      job_(job),
      run_(run),
      metrics_(metrics),
      progress_(progress),
      strategy_(job.config.text("eval_strategy")),
      every_(job.config, "eval_steps", job.steps.total),
      best_(job.config, metrics.evaluations()) {}

bool Evaluating::is_due(const Control& control) const {
  const int64_t step = session_.n_steps();
  if (job_.data.eval.size() == 0) return false;
  if (is_last_step()) return true;  // its predictions are part of the result
  if (control.eval_interval()) return control.eval_interval()->is_over(step, last_end_);
  if (strategy_ == "epoch") return step % job_.steps.per_epoch == 0;
  return strategy_ == "steps" && every_.is_over(step, last_end_);
}

bool Evaluating::is_last_step() const {
  return session_.n_steps() >= job_.steps.total || best_.is_out_of_patience();
}

bool Evaluating::is_done() const {
  return is_last_step() &&
         (job_.data.eval.size() == 0 || metrics_.last_evaluation_step() == session_.n_steps());
}

void Evaluating::after_step(Control& control) {
  const int64_t step = session_.n_steps();
  const bool is_known = metrics_.last_evaluation_step() == step;
  // The predictions of the last step are wanted, too, and no log holds them.
  if (!is_due(control) || (is_known && !is_last_step())) return;
  run_.set_phase(runs::Phase::evaluating);
  const auto goes_on = [&] {
    do {
      control.attend();
    } while (control.is_paused());
    return !control.leaves();
  };
  auto evaluation =
      evaluate_unless(session_, job_.model, job_.data, goes_on, predictions_of(run_.path()));
  run_.set_phase(runs::Phase::training);
  if (!evaluation) return;
  last_end_ = std::chrono::steady_clock::now();
  last_ = std::move(*evaluation);
  const double epoch = job_.steps.epochs(step);
  std::string text = fmt::format("epoch {:.2f}: eval_loss {:.4f}", epoch, last_.loss);
  nlohmann::ordered_json line = {{"step", step}, {"epoch", epoch}, {"eval_loss", last_.loss}};
  for (const auto& [name, value] : last_.metrics) {
    text += fmt::format("  {} {:.4f}", name, value);
    line["eval_" + name] = value;
  }
  progress_.log_line(text);
  if (is_known) return;
  metrics_.append(std::move(line));
  try {
    metrics_.sync();  // the next steps are safe on a drive at once, and the best model is one of it
  } catch (const Error&) {  // a full disk: the line waits, and the metrics say so
  }
  if (best_.is_out_of_patience())
    progress_.log_line(fmt::format("{} has not become better than after step {}: stopping early",
                                   best_.metric(), best_.ranking().front()));
}

}  // namespace ferry
