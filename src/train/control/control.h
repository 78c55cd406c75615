#pragma once
// Requests to a training while it runs: by signal (Ctrl-C, SIGTERM, SIGHUP) or through its control
// socket (`ferry runs pause | resume | stop | save | sample | set`). The loop attends between two
// steps; a pause stays inside attend().

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/engine/session.h"
#include "src/runs/control.h"
#include "src/runs/directory/run_directory.h"
#include "src/term/progress.h"
#include "src/train/control/interval.h"

namespace ferry {

class Control {
 public:
  /** Opens the socket and names it in run.json; where none can be made the run says so and obeys
   * signals only. */
  Control(Session& session,
          const config::Config& config,
          int64_t total_steps,
          runs::RunDirectory& run,
          term::Progress& progress);
  ~Control();

  /** Between steps: acts on what was asked; while the run is paused, it stays here. Settings that
   * an earlier process of the run changed at this step change again. */
  void attend();
  /** True where the step in progress shall be dropped: somebody wants the run to pause or to leave.
   * Asked inside a step, many times. */
  bool interrupts();
  /** True while the run is paused and not to leave. Then no step may follow attend(): it came back
   * for a checkpoint that somebody asked for. */
  bool is_paused() const { return is_paused_ && !leaves(); }
  /** Takes the GPU's memory back after a pause that ended in leaving, where it is needed once more.
   * Throws Error(does_not_fit) where others have it. */
  void return_to_gpu();
  /** True where a signal or `stop` asked the run to leave. */
  bool leaves() const;
  /** True where somebody wants a checkpoint of the session as it is: by `save`, or by leaving
   * without `--no-save`. */
  bool saves() const;
  /** Tells those who wait for the checkpoint that saves() asked for what became of it. */
  void tell_saved(bool is_done, const std::string& text);
  /** The interval between evaluations that somebody set; nullopt: the run's own. */
  const std::optional<Interval>& eval_interval() const { return eval_interval_; }
  /** True where somebody wants samples of the session as it is, by `sample`. */
  bool wants_samples() const { return !waiting_for_samples_.empty(); }
  /** Tells those who wait for samples what became of them. */
  void tell_sampled(bool is_done, const std::string& text);

 private:
  /** A setting that changed in the middle of the run; a resumed run changes it at the same step. */
  struct Change {
    int64_t step = 0;  ///< taken before it
    std::string key, value;
    std::string instead_of;  ///< the value that the run's settings say
    bool is_applied = false;
  };

  std::optional<runs::ControlRequest> next(std::chrono::milliseconds patience);
  void act(runs::ControlRequest request);
  void pause(runs::ControlRequest request);
  void go_on(runs::ControlRequest request);
  void change(runs::ControlRequest request);
  void read_changes();
  void apply_due_changes();
  void write_changes();

  Session& session_;
  const config::Config& config_;
  int64_t total_steps_;
  runs::RunDirectory& run_;
  term::Progress& progress_;
  std::unique_ptr<runs::ControlServer> server_;  ///< null where no socket could be made
  std::deque<runs::ControlRequest> arrived_;     ///< inside a step, to be attended after it
  std::vector<runs::ControlRequest> waiting_;    ///< requests for a checkpoint, or for the end
  std::vector<runs::ControlRequest> waiting_for_samples_;
  std::vector<Change> changes_;
  std::optional<Interval> eval_interval_;
  bool is_paused_ = false, has_left_gpu_ = false;
  bool stops_ = false, stops_unsaved_ = false, saves_ = false;
};

}  // namespace ferry
