#pragma once
// Option trace: the first steps of this process are timed action by action and written as a Chrome
// trace. The loop asks after every step.

#include <filesystem>
#include <optional>

#include "offload/executor/step_tracer.h"
#include "src/config/config.h"
#include "src/engine/session.h"
#include "src/runs/logs/metrics_log.h"
#include "src/term/progress.h"

namespace ferry {

class Tracing {
 public:
  /** Traces from the next step on, where the option asks for it. */
  Tracing(Session& session,
          const config::Config& config,
          const StepShape& shape,
          runs::MetricsLog& metrics,
          term::Progress& progress);
  ~Tracing() { session_.executor().set_tracer(nullptr); }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  /** Writes the trace once its steps are over: says where, and what share of copies and updates was
   * hidden under computing; the same goes into metrics.jsonl. */
  void after_step();
  /** The run is over, maybe before that. */
  void finish();

 private:
  Session& session_;
  runs::MetricsLog& metrics_;
  term::Progress& progress_;
  std::filesystem::path file_;
  std::optional<StepTracer> tracer_;  ///< until the trace is written
};

}  // namespace ferry
