#pragma once
// Decides when a run evaluates (options eval_strategy, eval_steps), and prints the results. The
// loop calls it after every step; src/train/evaluate/evaluation.h is the evaluation itself.

#include <chrono>

#include "src/runs/directory/run_directory.h"
#include "src/runs/logs/metrics_log.h"
#include "src/term/progress.h"
#include "src/train/control/best_model.h"
#include "src/train/control/control.h"
#include "src/train/control/interval.h"
#include "src/train/evaluate/evaluation.h"

namespace ferry {

class Evaluating {
 public:
  Evaluating(Session& session,
             const Job& job,
             runs::RunDirectory& run,
             runs::MetricsLog& metrics,
             term::Progress& progress);

  /** Evaluates where that is due after this many steps and not done yet; a run that is to leave
   * drops it, and begins with it when it is resumed. */
  void after_step(Control& control);
  /** True where the run ends here: after its last step, or out of early_stopping_patience. */
  bool is_last_step() const;
  /** True where nothing is left to evaluate then: everything was evaluated, or there is no data. */
  bool is_done() const;
  const BestModel& best() const { return best_; }
  /** The last evaluation; empty where there was none. */
  Evaluation take_last() { return std::move(last_); }

 private:
  bool is_due(const Control& control) const;

  Session& session_;
  const Job& job_;
  runs::RunDirectory& run_;
  runs::MetricsLog& metrics_;
  term::Progress& progress_;
  std::string strategy_;
  Interval every_;
  std::chrono::steady_clock::time_point last_end_ = std::chrono::steady_clock::now();
  BestModel best_;
  Evaluation last_;
};

}  // namespace ferry
