#include "src/train/prepare/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "src/base/error.h"

namespace ferry {
namespace {

/** In config.json: whether a classifier was trained on pairs of texts. Nobody else's key. */
constexpr std::string_view kPairsKey = "ferry_text_pairs";

/** Throws Error(data) where the model is none. */
LabelScheme scheme_of_classifier(const HfDirectory& model) {
  const HfConfig& config = model.config();
  // transformers leaves problem_type out until it has trained.
  const auto problem = config.problem_type.empty() ? ProblemType::single_label
                                                   : parse_problem_type(config.problem_type);
  if (!problem)
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has problem_type '{}'", config.origin(), config.problem_type),
                "expected single_label_classification, multi_label_classification or regression");
  if (config.id2label.empty())
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has no labels in its config.json", model.path().string()),
                "it is not a trained classifier; train one with `ferry train`");
  return {.problem = *problem, .labels = LabelMap(config.id2label)};
}

}  // namespace

LossKind Task::loss() const {
  if (masks_tokens) return LossKind::masked_lm;
  switch (scheme.problem) {
    case ProblemType::multi_label:
      return LossKind::multi_label;
    case ProblemType::regression:
      return LossKind::regression;
    default:
      return LossKind::cross_entropy;
  }
}

int64_t Task::n_labels() const {
  return scheme.problem == ProblemType::regression ? 1 : std::max<int64_t>(scheme.labels.size(), 1);
}

Task trained_task(const HfDirectory& model) {
  const HfConfig& config = model.config();
  Task task;
  task.masks_tokens =
      std::ranges::find(config.architectures, "BertForMaskedLM") != config.architectures.end();
  if (!task.masks_tokens) task.scheme = scheme_of_classifier(model);
  if (const auto has_pairs = config.fields().find(kPairsKey))
    task.scheme.has_pairs = has_pairs->flag();
  return task;
}

void write_task(const Task& task, HfConfig& config) {
  const LabelScheme& scheme = task.scheme;
  if (!task.masks_tokens) {
    config.set_problem_type(hf_name_of(scheme.problem));
    config.set_labels(scheme.problem == ProblemType::regression
                          ? std::vector<std::string>{"LABEL_0"}
                          : scheme.labels.names());
  }
  const bool has_pairs = scheme.has_pairs.value_or(false);
  if (has_pairs || config.json().contains(kPairsKey))
    config.set(kPairsKey, has_pairs && !task.masks_tokens);
}

}  // namespace ferry
