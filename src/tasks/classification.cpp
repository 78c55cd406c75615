#include "src/tasks/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/base/error.h"
#include "src/data/metrics.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** A model's word on one text. */
struct Prediction {
  std::span<const float> logits;  ///< (n_labels)
  std::vector<float> scores;      ///< probabilities; a regression's value
  std::vector<int32_t> classes;   ///< one, or a multi-label sample's; empty for a regression
};

Prediction predict(std::span<const float> logits, ProblemType problem) {
  Prediction p = {.logits = logits, .scores = {logits.begin(), logits.end()}, .classes = {}};
  if (problem == ProblemType::regression) return p;
  if (problem == ProblemType::multi_label) {
    for (size_t i = 0; i < logits.size(); ++i) {
      p.scores[i] = static_cast<float>(1.0 / (1.0 + std::exp(-static_cast<double>(logits[i]))));
      if (logits[i] > 0) p.classes.push_back(static_cast<int32_t>(i));
    }
    return p;
  }
  const float top = *std::ranges::max_element(logits);
  double sum = 0;
  for (float l : logits)
    sum += std::exp(static_cast<double>(l - top));
  for (size_t i = 0; i < logits.size(); ++i)
    p.scores[i] = static_cast<float>(std::exp(static_cast<double>(logits[i] - top)) / sum);
  p.classes = {argmax(logits)};
  return p;
}

/** Scores one kind of labels. */
class Scores {
 public:
  virtual ~Scores() = default;
  virtual void add(const TokenizedDataset& data, int64_t sample, const Prediction& p) = 0;
  virtual Metrics metrics() const = 0;
  virtual std::vector<int64_t> confusion() const { return {}; }
};

class ValueScores : public Scores {
 public:
  void add(const TokenizedDataset& data, int64_t sample, const Prediction& p) override {
    scores_.add(static_cast<double>(data.values(sample).front()),
                static_cast<double>(p.scores.front()));
  }
  Metrics metrics() const override {
    Metrics metrics = {{"mean_absolute_error", scores_.mean_absolute_error()},
                       {"mean_squared_error", scores_.mean_squared_error()}};
    if (auto r = scores_.pearson()) metrics.emplace_back("pearson", *r);
    if (auto r = scores_.spearman()) metrics.emplace_back("spearman", *r);
    return metrics;
  }

 private:
  RegressionScores scores_;
};

class SeveralClassScores : public Scores {
 public:
  explicit SeveralClassScores(int32_t n_labels) : scores_(n_labels) {}
  void add(const TokenizedDataset& data, int64_t sample, const Prediction& p) override {
    scores_.add(data.labels(sample), p.logits);
  }
  Metrics metrics() const override {
    return {{"accuracy", scores_.exact_match()},
            {"f1_micro", scores_.micro_f1()},
            {"f1_macro", scores_.macro_f1()}};
  }

 private:
  MultiLabelScores scores_;
};

/** The metrics of one class a text. The first is the one to go by: accuracy says little where few
 * texts have the rarest label. */
std::vector<std::string> one_class_metrics(int32_t n_labels, bool is_unbalanced) {
  std::vector<std::string> names = {"accuracy", "f1_macro", "matthews_correlation"};
  if (is_unbalanced) std::swap(names[0], names[1]);
  if (n_labels == 2) names.insert(names.begin() + 1, "f1");
  return names;
}

class OneClassScores : public Scores {
 public:
  OneClassScores(int32_t n_labels, bool is_unbalanced)
      : matrix_(n_labels), is_unbalanced_(is_unbalanced) {}
  void add(const TokenizedDataset& data, int64_t sample, const Prediction& p) override {
    matrix_.add(data.labels(sample).front(), p.classes.front());
  }
  Metrics metrics() const override {
    Metrics metrics;
    for (const std::string& name : one_class_metrics(matrix_.n_classes(), is_unbalanced_))
      metrics.emplace_back(name, name == "accuracy"   ? matrix_.accuracy()
                                 : name == "f1"       ? matrix_.f1(1)
                                 : name == "f1_macro" ? matrix_.macro_f1()
                                                      : matrix_.matthews_correlation());
    return metrics;
  }
  std::vector<int64_t> confusion() const override {
    std::vector<int64_t> counts;
    for (int32_t actual = 0; actual < matrix_.n_classes(); ++actual)
      for (int32_t predicted = 0; predicted < matrix_.n_classes(); ++predicted)
        counts.push_back(matrix_.at(actual, predicted));
    return counts;
  }

 private:
  ConfusionMatrix matrix_;
  bool is_unbalanced_;
};

std::unique_ptr<Scores> scores_for(const LabelScheme& scheme) {
  if (scheme.problem == ProblemType::regression) return std::make_unique<ValueScores>();
  if (scheme.problem == ProblemType::multi_label)
    return std::make_unique<SeveralClassScores>(scheme.labels.size());
  return std::make_unique<OneClassScores>(scheme.labels.size(), scheme.is_unbalanced);
}

class ClassificationScorer : public Scorer {
 public:
  ClassificationScorer(const TokenizedDataset& data, const LabelScheme& scheme, int64_t n_labels)
      : data_(data),
        scheme_(scheme),
        n_labels_(static_cast<size_t>(n_labels)),
        scores_(scores_for(scheme)) {}

  void add(const MicroBatch& batch,
           std::span<const float> logits,
           const TakeAnswer& take) override {
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const Prediction p = predict(logits.subspan(i * n_labels_, n_labels_), scheme_.problem);
      if (data_.has_labels()) scores_->add(data_, batch.samples[i], p);
      if (take) take(answer(batch.samples[i], p));
    }
  }
  Metrics metrics(double /*loss*/) const override { return scores_->metrics(); }
  std::vector<int64_t> confusion() const override { return scores_->confusion(); }

 private:
  std::vector<std::string> names(std::span<const int32_t> classes) const {
    std::vector<std::string> names;
    for (int32_t c : classes)
      names.push_back(scheme_.labels.name(c));
    return names;
  }

  /** "business (0.97)", "3.52", "none". */
  std::string in_words(const Prediction& p) const {
    if (scheme_.problem == ProblemType::regression) return fmt::format("{:.4g}", p.scores[0]);
    std::string text;
    for (int32_t c : p.classes)
      text += fmt::format("{}{} ({:.2f})", text.empty() ? "" : ", ", scheme_.labels.name(c),
                          p.scores[static_cast<size_t>(c)]);
    return text.empty() ? "none" : text;
  }

  Answer answer(int64_t sample, const Prediction& p) const {
    const int64_t place = data_.example_of(sample);
    const Label label = data_.example(place).label;
    const std::vector<std::string> classes = names(p.classes);
    ordered_json predicted, compared;
    std::string truth;
    switch (scheme_.problem) {
      case ProblemType::regression:
        predicted["value"] = p.scores[0];
        compared = {{"label", label.value}, {"predicted", p.scores[0]}};
        truth = fmt::format("{:.4g}", label.value);
        break;
      case ProblemType::multi_label: {
        const std::vector<std::string> actual = names(label.classes);
        compared = {{"label", actual}, {"predicted", classes}};
        for (const std::string& name : actual)
          truth += (truth.empty() ? "" : ", ") + name;
        if (truth.empty()) truth = "none";
        break;
      }
      default:
        truth = label.class_id >= 0 ? scheme_.labels.name(label.class_id) : "?";
        if (label.class_id >= 0) compared["label"] = truth;
        compared["predicted"] = classes.front();
    }
    if (scheme_.problem != ProblemType::regression) {
      predicted["labels"] = classes;  // also where no label is likely
      for (size_t c = 0; c < p.scores.size(); ++c)
        predicted["scores"][scheme_.labels.name(static_cast<int32_t>(c))] = p.scores[c];
    }
    predicted["logits"] = compared["logits"] = std::vector<float>(p.logits.begin(), p.logits.end());
    return {.example = place,
            .words = in_words(p),
            .truth = truth,
            .predicted = std::move(predicted),
            .compared = std::move(compared)};
  }

  const TokenizedDataset& data_;
  const LabelScheme& scheme_;
  size_t n_labels_;
  std::unique_ptr<Scores> scores_;
};

class Classification : public Task {
 public:
  Classification(LabelScheme scheme, const TaskSettings& settings)
      : Task(std::move(scheme)),
        padding_(settings.padding),
        virtual_tokens_(settings.virtual_tokens) {}

  std::string_view name() const override { return "classification"; }

  LossKind loss() const override {
    switch (scheme().problem) {
      case ProblemType::multi_label:
        return LossKind::multi_label;
      case ProblemType::regression:
        return LossKind::regression;
      default:
        return LossKind::cross_entropy;
    }
  }

  int64_t n_labels() const override {
    return scheme().problem == ProblemType::regression
               ? 1
               : std::max<int64_t>(scheme().labels.size(), 1);
  }

  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    TokenizedExample& sample =
        out.emplace_back(encode_texts(example, tokenizer, max_length - virtual_tokens_.n));
    while (padding_ && sample.ids.size() > 1 && sample.ids.back() == *padding_) {
      sample.ids.pop_back();
      sample.type_ids.pop_back();
    }
    virtual_tokens_.prepend(sample);
    switch (scheme().problem) {
      case ProblemType::regression:
        sample.values = {example.label.value};
        break;
      case ProblemType::multi_label:
        sample.labels = example.label.classes;
        break;
      default:
        if (example.label.class_id >= 0) sample.labels = {example.label.class_id};
    }
  }

  int64_t n_ids(const Tokenizer& tokenizer) const override {
    return virtual_tokens_.end_of_ids(tokenizer.vocab_size());
  }
  int64_t setting_of_samples() const override {
    return padding_.value_or(-1) ^ (virtual_tokens_.n << 32);
  }
  bool has_one_class() const override { return loss() == LossKind::cross_entropy; }
  /** The squares of a regression differ much from batch to batch. */
  double worrying_rise() const override {
    return scheme().problem == ProblemType::regression ? 10 : Task::worrying_rise();
  }
  double guessing_loss() const override {
    if (scheme().problem == ProblemType::multi_label) return std::log(2.0);
    return has_one_class() ? std::log(static_cast<double>(n_labels())) : 0;
  }

  std::string answer(const Example& example) const override {
    const Label& label = example.label;
    switch (scheme().problem) {
      case ProblemType::regression:
        return in_words(label.value);
      case ProblemType::multi_label:
        return in_words(label.classes);
      default:
        return label.class_id >= 0 ? scheme().labels.name(label.class_id) : std::string();
    }
  }
  std::string answer(const TokenizedDataset& data, int64_t sequence) const override {
    if (scheme().problem != ProblemType::regression) return in_words(data.labels(sequence));
    const auto values = data.values(sequence);
    return values.empty() ? std::string() : in_words(values.front());
  }

  std::vector<TokenPlaces> places(const Example& example,
                                  const Tokenizer& tokenizer,
                                  int64_t max_length) const override {
    auto places = Task::places(example, tokenizer, max_length - virtual_tokens_.n);
    for (int64_t i = virtual_tokens_.n; i-- > 0;)
      places.front().insert(places.front().begin(),
                            {.id = virtual_tokens_.first + static_cast<int32_t>(i), .bytes = {}});
    return places;
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& from,
             const Tokenizer& /*tokenizer*/,
             const MaskKey& /*key*/) const override {
    const auto width = static_cast<size_t>(n_labels());
    if (scheme().problem == ProblemType::multi_label)
      batch.values.assign(batch.samples.size() * width, 0.0f);
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const int64_t sample = batch.samples[i];
      switch (scheme().problem) {
        case ProblemType::regression:
          batch.values.push_back(from.has_labels() ? from.values(sample).front() : 0.0f);
          break;
        case ProblemType::multi_label:
          for (int32_t c : from.labels(sample))
            batch.values[i * width + static_cast<size_t>(c)] = 1.0f;
          break;
        default:
          batch.labels.push_back(from.has_labels() ? from.labels(sample).front() : 0);
      }
    }
    batch.n_label_items = batch.n_real_seqs;
  }

  std::unique_ptr<Scorer> scorer(const TokenizedDataset& data,
                                 const Tokenizer& /*tokenizer*/) const override {
    return std::make_unique<ClassificationScorer>(data, scheme(), n_labels());
  }

  std::vector<std::string> metric_names() const override {
    switch (scheme().problem) {
      case ProblemType::regression:
        return {"loss", "mean_absolute_error", "mean_squared_error", "pearson", "spearman"};
      case ProblemType::multi_label:
        return {"loss", "accuracy", "f1_micro", "f1_macro"};
      default:
        std::vector<std::string> names =
            one_class_metrics(scheme().labels.size(), scheme().is_unbalanced);
        names.insert(names.begin(), "loss");
        return names;
    }
  }

  void write(HfConfig& config) const override {
    config.set_problem_type(hf_name_of(scheme().problem));
    config.set_labels(scheme().problem == ProblemType::regression
                          ? std::vector<std::string>{"LABEL_0"}
                          : scheme().labels.names());
    const bool has_pairs = scheme().has_pairs.value_or(false);
    if (has_pairs || config.json().contains(kPairsKey)) config.set(kPairsKey, has_pairs);
    if (padding_) config.set("pad_token_id", *padding_);
  }

  std::string next_commands(const std::string& model) const override {
    return fmt::format(
        "next: ferry predict --model {0} {1}\n      ferry export --model {0} --output DIR\n", model,
        scheme().has_pairs.value_or(false) ? "--pairs \"a text\" \"another\"" : "\"a text\"");
  }

 private:
  static std::string in_words(float value) { return fmt::format("{:.6g}", value); }
  std::string in_words(std::span<const int32_t> classes) const {
    std::string names;
    for (const int32_t id : classes)
      names += (names.empty() ? "" : ", ") + scheme().labels.name(id);
    return names.empty() ? "none" : names;
  }

  std::optional<int32_t> padding_;
  VirtualTokens virtual_tokens_;
};

std::shared_ptr<const Task> of_model(const HfConfig& config, const TaskSettings& settings) {
  // transformers leaves problem_type out until it has trained, and takes one label for a
  // regression.
  const auto assumed =
      config.id2label.size() == 1 ? ProblemType::regression : ProblemType::single_label;
  const auto problem =
      config.problem_type.empty() ? assumed : parse_problem_type(config.problem_type);
  if (!problem)
    throw Error(Fault::data, "model.open",
                fmt::format("'{}' has problem_type '{}'", config.origin(), config.problem_type),
                "expected single_label_classification, multi_label_classification or regression");
  if (config.id2label.empty())
    throw Error(Fault::data, "model.open", fmt::format("'{}' has no labels", config.origin()),
                "it is not a trained classifier; train one with `ferry train`");
  LabelScheme scheme = {
      .problem = *problem, .labels = LabelMap(config.id2label), .has_pairs = std::nullopt};
  if (const auto has_pairs = config.fields().find(kPairsKey)) scheme.has_pairs = has_pairs->flag();
  return std::make_shared<Classification>(std::move(scheme), settings);
}

}  // namespace

TaskKind classification_kind() {
  return {
      .name = "classification",
      .head = HeadKind::classification,
      .rows = {},
      .make = [](LabelScheme scheme, const TaskSettings& settings) -> std::shared_ptr<const Task> {
        return std::make_shared<Classification>(std::move(scheme), settings);
      },
      .of_model = of_model};
}

}  // namespace ferry
