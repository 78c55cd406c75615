#pragma once
// Decides which of a run's evaluations was the best, and whether the run shall stop for want of a
// better one (options metric_for_best_model, greater_is_better, early_stopping_*). Everything is
// read from the metrics log, so that a resumed run decides as if it had never stopped.

#include <cstdint>
#include <string>
#include <vector>

#include "src/inputs/tokens.h"
#include "src/runs/logs/metrics_log.h"

namespace ferry {

/** Throws Error(usage) where the run's evaluations have no such metric, or are not made while a
 * best one is asked for. */
void check_best_model(const config::Config& config, const Data& data);

class BestModel {
 public:
  /** `config` is one that check_best_model() let pass. `evaluations`: those of the run so far, in
   * order; they outlive it, and may become more. */
  BestModel(const config::Config& config, const std::vector<runs::EvaluationLine>& evaluations);

  /** Steps of all evaluations, the best first; of equals the earlier, as transformers takes it.
   * Evaluations whose metric is not finite come last. */
  std::vector<int64_t> ranking() const;
  /** The last evaluations, early_stopping_patience of them, were none better than the best before
   * them by more than early_stopping_threshold. */
  bool is_out_of_patience() const;
  /** The final model is the best one, and its checkpoint is kept. */
  bool is_loaded_at_end() const { return is_loaded_at_end_; }
  /** "eval_accuracy" */
  const std::string& metric() const { return metric_; }

 private:
  double score(const runs::EvaluationLine& line) const;  // greater is better; NaN: none

  const std::vector<runs::EvaluationLine>& evaluations_;
  std::string metric_;
  bool is_greater_better_;
  bool is_loaded_at_end_;
  int64_t patience_;
  double threshold_;
};

}  // namespace ferry
