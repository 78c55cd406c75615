#pragma once
// Option max_time: a run whose steps have taken so long has had its last one. The loop asks after
// every step; what it does at the end follows from Job::n_steps.

#include "src/runs/metrics_log.h"
#include "src/term/progress.h"
#include "src/train/prepare/job.h"

namespace ferry {

class MaxTime {
 public:
  /** `metrics` has the time of every step of the run, those before a resume too. */
  MaxTime(Job& job, const runs::MetricsLog& metrics, term::Progress& progress)
      : job_(job), metrics_(metrics), progress_(progress) {}

  /** Makes this the run's last step when the time is over, and says so. */
  void after_step(int64_t n_steps);

 private:
  Job& job_;
  const runs::MetricsLog& metrics_;
  term::Progress& progress_;
};

}  // namespace ferry
