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
  const Collator collator(model.tokenizer, data, model.table);
  const auto scorer = task.scorer(data.eval, model.tokenizer);
  const bool is_labelled = data.eval.has_labels() || !task.wants_logits();
  const FirstPosition first_position =
      positions_in_order(data.eval, model.table.long_from, kLongPosition);
  const auto n_at_once = static_cast<size_t>(session.n_evaluated_at_once());
  std::vector<MicroBatch> batches(n_at_once);
  std::vector<HostBatch> shown;
  double loss_sum = 0;
  int64_t n_items = 0, index = 0;
  const auto passes = plan_pass(data.eval.size(), data.split.micro_batch_size);
  for (size_t first = 0; first < passes.size(); first += n_at_once) {
    if (!goes_on()) return false;
    shown.clear();
    for (size_t i = first; i < std::min(first + n_at_once, passes.size()); ++i) {
      // The mask of an evaluation depends on the seed alone, so that two evaluations compare.
      const MaskKey key = {.seed = data.seed, .step = -1, .micro_batch = index++};
      shown.push_back(collator.collate(data.eval, passes[i], data.token_sizes, key,
                                       batches[i - first], first_position));
    }
    const std::vector<Evaluated> evaluated = session.evaluate_each(shown, task.wants_logits());
    for (size_t i = 0; i < evaluated.size(); ++i) {
      const auto& [loss, logits] = evaluated[i];
      const MicroBatch& batch = batches[i];
      check_finite(loss, logits, model.table.compute, is_labelled);
      loss_sum += loss * static_cast<double>(batch.n_label_items);
      n_items += batch.n_label_items;
      scorer->add(batch, logits, take);
    }
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

std::filesystem::path predictions_of(const std::filesystem::path& run) {
  return run / "predictions.jsonl";
}

PredictionFile::PredictionFile(const std::filesystem::path& target) {
  write([&] { file_.emplace(target); });
}

void PredictionFile::add(std::string_view line) {
  constexpr size_t kOpen_bytes = 1 << 16;
  open_ += line;
  if (open_.size() >= kOpen_bytes) write([this] { file_->append(open_); });
}

/** The evaluation goes on: its metrics are worth more than a file that can be made again. */
void PredictionFile::write(const std::function<void()>& write) {
  try {
    if (!full_) write();
  } catch (const DiskFull& full) {
    full_ = full;
  }
  open_.clear();
}

void PredictionFile::commit() {
  if (!open_.empty()) write([this] { file_->append(open_); });
  if (full_) throw DiskFull(*full_);
  file_->commit();
}

Evaluation evaluate(Session& session,
                    const Model& model,
                    const Data& data,
                    const std::filesystem::path& predictions) {
  return evaluate_unless(
             session, model, data, [] { return true; }, predictions)
      .value();
}

std::optional<Evaluation> evaluate_unless(Session& session,
                                          const Model& model,
                                          const Data& data,
                                          const std::function<bool()>& goes_on,
                                          const std::filesystem::path& predictions) {
  Evaluation out;
  if (!predictions.empty()) out.predictions = std::make_unique<PredictionFile>(predictions);
  const int64_t n = data.eval.n_examples();
  const std::array<int64_t, 3> shown = {0, n / 2, n - 1};
  int64_t n_answers = 0;
  const auto take = [&](Answer answer) {
    if (out.predictions)
      out.predictions->add(answer_line(data.eval.example(answer.example), answer.compared));
    if (std::ranges::find(shown, n_answers++) != shown.end())
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
