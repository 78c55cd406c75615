#pragma once
// Decides when a run saves (options save_strategy, save_steps, save_total_limit,
// load_best_model_at_end), and prints that. The loop calls it after every step;
// src/train/checkpoint/checkpoint.h is the checkpoint itself.

#include <chrono>
#include <optional>
#include <string>

#include "src/runs/directory/run_directory.h"
#include "src/runs/logs/metrics_log.h"
#include "src/term/progress.h"
#include "src/train/checkpoint/checkpoint.h"
#include "src/train/control/best_model.h"
#include "src/train/control/control.h"
#include "src/train/control/interval.h"

namespace ferry {

class Saving {
 public:
  Saving(Session& session,
         const Job& job,
         runs::RunDirectory& run,
         runs::MetricsLog& metrics,
         const BestModel& best,
         term::Progress& progress);

  /** Begins a checkpoint of the session as it is where one is due, or where `control` wants one. A
   * checkpoint that could not be written (a full disk) is said, and training goes on: the last
   * complete one is there, the next is tried when it is due. */
  void after_step(Control& control);
  /** Waits for the one under way. A failure is thrown where the run is left with it; else the
   * trained model, a third of its size, may still find room. */
  void finish(Control& control, bool is_interrupted);

 private:
  bool is_due() const;
  bool is_best() const;
  bool is_best_so_far(int64_t step) const;
  void after_dropped_step(Control& control, bool is_asked);
  void begin(bool is_asked);
  void tell(const CheckpointSaver::Outcome& outcome, Control& control);

  Session& session_;
  const Job& job_;
  runs::RunDirectory& run_;
  runs::MetricsLog& metrics_;
  const BestModel& best_;
  term::Progress& progress_;
  CheckpointSaver saver_;
  bool is_asked_for_ = false;  ///< the one under way, by somebody who waits
  std::string strategy_;
  std::optional<Interval> every_;  ///< none: Ferry chooses
  int64_t begun_step_;             ///< of the last checkpoint; -1: the session has none yet
  bool has_failed_ = false;
  std::chrono::duration<double> last_took_{};
  std::chrono::steady_clock::time_point last_began_ = std::chrono::steady_clock::now();
};

}  // namespace ferry
