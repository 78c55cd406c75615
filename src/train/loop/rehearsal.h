#pragma once
// Steps that change nothing, before the first one: they show whether memory suffices, and what a
// step takes.

#include <cstdint>

#include "src/train/prepare/job.h"

namespace ferry {

/** The time and memory that a run will take, from one rehearsal of each micro-batch size it may
 * meet and from the plan. */
struct Promise {
  double seconds = 0;
  double sample_seconds = 0;  ///< the run's samples, where none of them ends before its time
  int64_t peak_bytes = 0;     ///< of this process in host memory
  int64_t gpu_bytes = 0;      ///< in use on the card, other programs' with it; 0 on a CPU
};

/** Runs each size that the first samples fill, largest first: what could run out of memory does so
 * now. On a CPU, where nothing has to be loaded first, it ends after some ten seconds and one
 * micro-batch, with a step's time worked out of the micro-batches that it came to. Says on standard
 * error that it measures. The promise is for what is left after `n_done` steps; the host memory
 * that the process took before its session was opened is not in it. */
Promise rehearse(Session& session, const Job& job, int64_t n_done);

}  // namespace ferry
