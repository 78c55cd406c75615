#include "src/train/evaluate/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "src/base/error.h"
#include "src/train/prepare/batches.h"

namespace ferry {
namespace {

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

/** A pass over data.eval: fills loss, metrics and confusion. False once `goes_on` said no. */
bool pass(Session& session,
          const Model& model,
          const Data& data,
          const std::function<bool()>& goes_on,
          const TakeAnswer& take,
          Evaluation& out) {
  const Task& task = *data.task;
  const Collator collator(model.tokenizer, data);
  const auto scorer = task.scorer(data.eval, data.eval_texts, model.tokenizer);
  const bool is_labelled = data.eval.has_labels() || !task.wants_logits();
  MicroBatch batch;
  std::vector<float> logits;
  double loss_sum = 0;
  int64_t n_items = 0, index = 0;
  for (const auto& samples : plan_pass(data.eval.size(), data.split.micro_batch_size)) {
    if (!goes_on()) return false;
    // The mask of an evaluation depends on the seed alone, so that two evaluations compare.
    const MaskKey key = {.seed = data.seed, .step = -1, .micro_batch = index++};
    const double loss =
        session.evaluate(collator.collate(data.eval, samples, data.token_sizes, key, batch),
                         task.wants_logits() ? &logits : nullptr);
    check_finite(loss, logits, model.table.compute, is_labelled);
    loss_sum += loss * static_cast<double>(batch.n_label_items);
    n_items += batch.n_label_items;
    scorer->add(batch, logits, take);
  }
  scorer->finish(take);
  if (!is_labelled || n_items == 0) return true;
  out.loss = loss_sum / static_cast<double>(n_items);
  out.metrics = scorer->metrics(out.loss);
  out.confusion = scorer->confusion();
  return true;
}

}  // namespace

std::string answer_line(const Example& example, const JsonValue& fields) {
  nlohmann::ordered_json row;
  row["text"] = example.text;
  if (example.text_pair) row["text_pair"] = *example.text_pair;
  row.update(*fields);
  return JsonValue(std::move(row)).line();
}

Evaluation evaluate(Session& session, const Model& model, const Data& data) {
  return evaluate_unless(session, model, data, [] { return true; }).value();
}

std::optional<Evaluation> evaluate_unless(Session& session,
                                          const Model& model,
                                          const Data& data,
                                          const std::function<bool()>& goes_on) {
  Evaluation out;
  const auto n = static_cast<int64_t>(data.eval_texts.size());
  const std::array<int64_t, 3> shown = {0, n / 2, n - 1};
  const auto take = [&](Answer answer) {
    const Example& example = data.eval_texts[static_cast<size_t>(answer.example)];
    out.predictions += answer_line(example, answer.compared);
    if (std::ranges::find(shown, answer.example) != shown.end())
      out.shown.push_back(std::move(answer));
  };
  if (!pass(session, model, data, goes_on, take, out)) return std::nullopt;
  return out;
}

void answer(Session& session, const Model& model, const Data& data, const TakeAnswer& take) {
  Evaluation out;
  pass(
      session, model, data, [] { return true; }, take, out);
}

}  // namespace ferry
