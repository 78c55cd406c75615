#pragma once
// The training loop: steps, log lines, an evaluation after each epoch. It calls named stages only;
// src/engine/session.h is the step itself.

#include <cstdint>
#include <vector>

#include "src/train/evaluation.h"

namespace ferry {

struct TrainingResult {
  std::vector<double> losses;  ///< per step
  double seconds = 0;          ///< of training, evaluations left out
  int64_t n_tokens = 0;
  int64_t n_skipped = 0;
  Evaluation evaluation;  ///< the last one; empty without evaluation data
};

/** What a run will take, from one rehearsal of each micro-batch size it may meet. */
struct Promise {
  double seconds = 0;
  int64_t peak_bytes = 0;  ///< of this process in host memory
};

/** Runs each size that the first samples fill, largest first: what could run out of memory does so
 * now. */
Promise rehearse(Session& session, const Job& job);

/** Throws Error(diverged) when the gradients stay non-finite. */
TrainingResult train(Session& session, const Job& job);

}  // namespace ferry
