#pragma once
// The training loop: steps, log lines, and when they are due evaluations and checkpoints. It calls
// named stages only; src/engine/session.h is the step itself.

#include <cstdint>
#include <optional>
#include <vector>

#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/run_directory.h"
#include "src/train/evaluate/evaluation.h"

namespace ferry {

/** The model that a run with load_best_model_at_end ends with. */
struct BestOutcome {
  int64_t best_step = 0;  ///< of the best evaluation
  int64_t step = 0;       ///< of the model: the best evaluation whose states were kept
  std::optional<runs::Checkpoint> checkpoint;  ///< that has them; none: the session
};

struct TrainingResult {
  std::vector<double> losses;  ///< the loss of every step of the run
  double seconds = 0;  ///< of training by this process; evaluations, samples and saving left out
  double sample_seconds = 0;
  int64_t n_steps = 0;   ///< taken by this process
  int64_t n_tokens = 0;  ///< tokens of these steps
  int64_t n_skipped = 0;
  Evaluation evaluation;  ///< the last one; empty without evaluation data
  std::optional<BestOutcome> best;
  int64_t gpu_bytes = 0;        ///< in use on the card after the last step, as the driver counts
  bool is_interrupted = false;  ///< left before the end, as asked
  bool is_saved = false;        ///< a checkpoint was saved before that
};

/** Trains from the step after session.n_steps() to the run's last (max_time may move it), or until
 * a signal comes; metrics and checkpoints go to the run's directory. Throws Error(diverged) when
 * the gradients stay non-finite. */
TrainingResult train(Session& session, Job& job, runs::RunDirectory& run);

}  // namespace ferry
