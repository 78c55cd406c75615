#pragma once
// A pass over the evaluation data: logits of every sample, loss, and the metrics of the task.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/train/prepare/job.h"

namespace ferry {

struct Prediction {
  std::vector<float> logits;  ///< (n_labels)
  std::vector<float> scores;  ///< probabilities; a regression's value
  std::vector<int32_t>
      classes;  ///< predicted: one, or a multi-label sample's; empty for a regression
};

struct Evaluation {
  double loss = 0;  ///< mean over samples (or masked tokens)
  std::vector<std::pair<std::string, double>>
      metrics;  ///< "accuracy", "f1_macro", "pearson", ... in the order to print; no undefined ones
  std::vector<Prediction> predictions;  ///< one a sample; none for a masked-LM run
  std::vector<int64_t> confusion;       ///< (n_labels, n_labels) row = true; single-label only
};

/** Evaluates data.eval, with loss and metrics where it has labels. `goes_on` is asked between two
 * batches; nothing comes back once it said no. */
std::optional<Evaluation> evaluate_unless(Session& session,
                                          const Model& model,
                                          const Data& data,
                                          const std::function<bool()>& goes_on);
Evaluation evaluate(Session& session, const Model& model, const Data& data);

/** The names of an evaluation's `metrics`, and "loss": "accuracy", "f1_macro", ... */
std::vector<std::string> metric_names(const Task& task);

/** "business (0.97)" or "3.52": a prediction in words. */
std::string describe(const Prediction& prediction, const LabelScheme& scheme);

}  // namespace ferry
