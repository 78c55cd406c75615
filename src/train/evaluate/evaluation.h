#pragma once
// A pass over the evaluation data: loss, the metrics of the task, and its answers.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/train/prepare/job.h"

namespace ferry {

struct Evaluation {
  double loss = 0;  ///< mean over the label items: samples, or tokens that are guessed
  Metrics metrics;
  std::vector<int64_t> confusion;  ///< (n_labels, n_labels) row = true; of one class a text only
  std::vector<Answer> shown;       ///< up to three answers, from the whole of the data
  std::string predictions;  ///< predictions.jsonl: an object a line; empty of a language model
};

/** Evaluates data.eval, with loss and metrics where it has labels. `goes_on` is asked between two
 * batches; nothing comes back once it said no. */
std::optional<Evaluation> evaluate_unless(Session& session,
                                          const Model& model,
                                          const Data& data,
                                          const std::function<bool()>& goes_on);
Evaluation evaluate(Session& session, const Model& model, const Data& data);

/** The answers alone, as they come, for texts without labels. */
void answer(Session& session, const Model& model, const Data& data, const TakeAnswer& take);

/** One line of JSON: the example's texts, then `fields`. */
std::string answer_line(const Example& example, const JsonValue& fields);

}  // namespace ferry
