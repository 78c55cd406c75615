#pragma once
// What is asked of a training while it runs: by signal (Ctrl-C, SIGTERM, SIGHUP) or through its
// control socket (`ferry runs pause | resume | stop | save | set`). The loop attends between two
// steps; a pause stays inside attend().

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/runs/control.h"
#include "src/runs/run_directory.h"
#include "src/term/progress.h"
#include "src/train/job.h"

namespace ferry {

class Control {
 public:
  /** Opens the socket and names it in run.json; without one (no directory of its own) the run says
   * so and obeys signals only. `run` already holds the changes of earlier processes. */
  Control(Session& session, const Job& job, runs::RunDirectory& run, term::Progress& progress);

  /** Before the step after session.n_steps(): acts on what was asked, pausing here if so; settings
   * that an earlier process changed at this step change again. */
  void attend();
  /** Asked to leave: by signal or `stop`. */
  bool leaves() const;
  /** A checkpoint is wanted now: `save`, or leaving but for `stop --no-save`. */
  bool saves() const;
  /** The checkpoint that saves() asked for has begun. */
  void begun();
  /** Tells those who asked for a checkpoint or the end. `text`: what became of it. */
  void tell(bool is_done, const std::string& text);

 private:
  void act(runs::ControlRequest request);
  void pause(runs::ControlRequest request);
  void change(runs::ControlRequest& request);
  void apply(const std::string& key, const std::string& value);

  Session& session_;
  const Job& job_;
  runs::RunDirectory& run_;
  term::Progress& progress_;
  std::unique_ptr<runs::ControlServer> server_;  ///< null where no socket could be made
  std::vector<runs::ControlRequest> waiting_;    ///< for a checkpoint, or the end
  bool is_paused_ = false, stops_ = false, saves_ = false, leaves_unsaved_ = false;
};

}  // namespace ferry
