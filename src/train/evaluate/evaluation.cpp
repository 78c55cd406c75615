#include "src/train/evaluate/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "src/base/error.h"
#include "src/data/metrics.h"
#include "src/train/prepare/batches.h"

namespace ferry {
namespace {

Prediction predict(std::vector<float> logits, ProblemType problem) {
  Prediction p;
  p.logits = std::move(logits);
  p.scores.resize(p.logits.size());
  switch (problem) {
    case ProblemType::regression:
      p.scores = p.logits;
      break;
    case ProblemType::multi_label:
      for (size_t i = 0; i < p.logits.size(); ++i) {
        p.scores[i] = static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(p.logits[i]))));
        if (p.logits[i] > 0) p.classes.push_back(static_cast<int32_t>(i));
      }
      break;
    default: {
      const float top = *std::max_element(p.logits.begin(), p.logits.end());
      double sum = 0;
      for (float l : p.logits)
        sum += std::exp(static_cast<double>(l - top));
      for (size_t i = 0; i < p.logits.size(); ++i)
        p.scores[i] = static_cast<float>(std::exp(static_cast<double>(p.logits[i] - top)) / sum);
      p.classes = {argmax(p.logits)};
    }
  }
  return p;
}

/** fp16 may overflow where training in bf16 or fp32 did not; a diverged model is not finite
 * anywhere. */
void check_finite(double loss, std::span<const float> logits, DType compute, bool labelled) {
  const bool are_finite = std::ranges::all_of(logits, [](float x) { return std::isfinite(x); });
  if (are_finite && (!labelled || std::isfinite(loss))) return;
  throw Error(Fault::diverged, "evaluate",
              are_finite ? fmt::format("the loss is {}", loss)
                         : std::string("the model's outputs are not finite"),
              compute == DType::f16 ? "use dtype = bf16 or fp32"
                                    : "the model has diverged: lower learning_rate");
}

/** Metrics from predictions and labels. */
void score(Evaluation& out, const TokenizedDataset& data, const LabelScheme& scheme) {
  switch (scheme.problem) {
    case ProblemType::regression: {
      RegressionScores scores;
      for (int64_t i = 0; i < data.size(); ++i)
        scores.add(static_cast<double>(data.value(i)),
                   static_cast<double>(out.predictions[static_cast<size_t>(i)].scores[0]));
      out.metrics = {{"mean_absolute_error", scores.mean_absolute_error()},
                     {"mean_squared_error", scores.mean_squared_error()}};
      if (auto r = scores.pearson()) out.metrics.emplace_back("pearson", *r);
      if (auto r = scores.spearman()) out.metrics.emplace_back("spearman", *r);
      return;
    }
    case ProblemType::multi_label: {
      MultiLabelScores scores(scheme.labels.size());
      for (int64_t i = 0; i < data.size(); ++i)
        scores.add(data.classes(i), out.predictions[static_cast<size_t>(i)].logits);
      out.metrics = {{"accuracy", scores.exact_match()},
                     {"f1_micro", scores.micro_f1()},
                     {"f1_macro", scores.macro_f1()}};
      return;
    }
    default: {
      ConfusionMatrix matrix(scheme.labels.size());
      for (int64_t i = 0; i < data.size(); ++i)
        matrix.add(data.class_id(i), out.predictions[static_cast<size_t>(i)].classes[0]);
      out.metrics = {{"accuracy", matrix.accuracy()}};
      if (matrix.n_classes() == 2) out.metrics.emplace_back("f1", matrix.f1(1));
      out.metrics.emplace_back("f1_macro", matrix.macro_f1());
      out.metrics.emplace_back("matthews_correlation", matrix.matthews_correlation());
      for (int32_t actual = 0; actual < matrix.n_classes(); ++actual)
        for (int32_t predicted = 0; predicted < matrix.n_classes(); ++predicted)
          out.confusion.push_back(matrix.at(actual, predicted));
    }
  }
}

}  // namespace

std::vector<std::string> metric_names(const Task& task) {
  if (task.masks_tokens) return {"loss", "perplexity"};
  switch (task.scheme.problem) {
    case ProblemType::regression:
      return {"loss", "mean_absolute_error", "mean_squared_error", "pearson", "spearman"};
    case ProblemType::multi_label:
      return {"loss", "accuracy", "f1_micro", "f1_macro"};
    default:
      if (task.scheme.labels.size() == 2)
        return {"loss", "accuracy", "f1", "f1_macro", "matthews_correlation"};
      return {"loss", "accuracy", "f1_macro", "matthews_correlation"};
  }
}

Evaluation evaluate(Session& session, const Model& model, const Data& data) {
  return evaluate_unless(session, model, data, [] { return true; }).value();
}

std::optional<Evaluation> evaluate_unless(Session& session,
                                          const Model& model,
                                          const Data& data,
                                          const std::function<bool()>& goes_on) {
  Evaluation out;
  const Task& task = data.task;
  const bool predicts = !task.masks_tokens;
  const bool labelled = !predicts || data.eval.problem() != ProblemType::unlabelled;
  const Collator collator(model.tokenizer, data);
  const auto n_labels = static_cast<size_t>(task.n_labels());
  MicroBatch batch;
  std::vector<float> logits;
  double loss_sum = 0;
  int64_t n_items = 0, index = 0;
  for (const auto& samples : plan_pass(data.eval.size(), data.split.micro_batch_size)) {
    if (!goes_on()) return {};
    // The mask of an evaluation depends on the seed alone, so that two evaluations compare.
    const MaskKey key = {.seed = data.seed, .step = -1, .micro_batch = index++};
    const double loss =
        session.evaluate(collator.collate(data.eval, samples, data.token_sizes, key, batch),
                         predicts ? &logits : nullptr);
    check_finite(loss, logits, model.table.compute, labelled);
    loss_sum += loss * static_cast<double>(batch.n_label_items);
    n_items += batch.n_label_items;
    if (predicts)
      for (size_t i = 0; i < samples.size(); ++i)
        out.predictions.push_back(predict({logits.begin() + static_cast<long>(i * n_labels),
                                           logits.begin() + static_cast<long>((i + 1) * n_labels)},
                                          task.scheme.problem));
  }
  if (!labelled || n_items == 0) return out;
  out.loss = loss_sum / static_cast<double>(n_items);
  if (predicts)
    score(out, data.eval, task.scheme);
  else
    out.metrics = {{"perplexity", std::exp(out.loss)}};
  return out;
}

std::string describe(const Prediction& p, const LabelScheme& scheme) {
  if (scheme.problem == ProblemType::regression) return fmt::format("{:.4g}", p.scores[0]);
  std::string text;
  for (int32_t c : p.classes)
    text += fmt::format("{}{} ({:.2f})", text.empty() ? "" : ", ", scheme.labels.name(c),
                        p.scores[static_cast<size_t>(c)]);
  return text.empty() ? "none" : text;
}

}  // namespace ferry
