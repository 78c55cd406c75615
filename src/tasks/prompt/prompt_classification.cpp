#include "src/tasks/prompt/prompt_classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "src/base/error.h"
#include "src/data/content_hash.h"
#include "src/files/hf/prompt_config.h"
#include "src/tasks/classification.h"
#include "src/tasks/prompt/prompt_template.h"

namespace ferry {
namespace {

constexpr std::string_view kPromptTask = "prompt-classification";

class PromptClassification : public Task {
 public:
  PromptClassification(LabelScheme scheme, const TaskSettings& settings, const PromptSettings& its)
      : PromptClassification(std::move(scheme), settings.virtual_tokens, PromptConfig()) {
    check_labels();
    config_.text = its.text;
    config_.words = words_of_labels(its.verbalizer, this->scheme().labels);
    config_.head.is_soft = its.is_soft;
    config_.head.labels.tokens = its.tokens;
    n_words_ = its.n_words;
    if (!its.tokenizer) return;
    template_.emplace(its.text, *its.tokenizer, its.is_decoder, its.n_words);
    config_.head.labels = tokens_of_words(config_.words, its.tokens, *its.tokenizer);
    config_.soft_tokens = template_->soft_tokens();
    // They take the place of those before all texts.
    if (!config_.soft_tokens.empty()) virtual_tokens_ = {};
  }
  /** A model's own prompt, whose texts nobody reads. */
  PromptClassification(LabelScheme scheme, VirtualTokens virtual_tokens, PromptConfig config)
      : Task(std::move(scheme)),
        classes_(classification_kind().make(this->scheme(), {})),
        virtual_tokens_(virtual_tokens),
        config_(std::move(config)) {}

  std::string_view name() const override { return kPromptTask; }
  LossKind loss() const override { return LossKind::prompt; }
  int64_t n_labels() const override { return classes_->n_labels(); }
  bool has_one_class() const override { return true; }
  bool names_rows() const override { return true; }
  double guessing_loss() const override { return classes_->guessing_loss(); }

  int64_t n_ids(const Tokenizer& tokenizer) const override {
    const auto n_soft = static_cast<int64_t>(config_.soft_tokens.size());
    return virtual_tokens_.end_of_ids(n_soft > 0 ? n_words_ + n_soft : tokenizer.vocab_size());
  }
  int64_t setting_of_samples() const override {
    ContentHash hash;
    hash.add_text(config_.text);
    hash.add_number(static_cast<uint64_t>(virtual_tokens_.n));
    return static_cast<int64_t>(hash.value());
  }
  std::vector<std::string> take_notes() const override {
    if (!template_ || !template_->leaves_words_out()) return {};
    return {"a decoder does not read what the template has behind the mask: it is left out"};
  }

  /** The value of a sample is the place of the token that is asked for. */
  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    PromptedExample prompted = prompt().apply(example, tokenizer, max_length - virtual_tokens_.n);
    TokenizedExample& sample = out.emplace_back();
    sample.ids = std::move(prompted.ids);
    sample.truncated = prompted.truncated;
    sample.values = {static_cast<float>(prompted.asked + static_cast<size_t>(virtual_tokens_.n))};
    if (example.label.class_id >= 0) sample.labels = {example.label.class_id};
    virtual_tokens_.prepend(sample);
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& from,
             const Tokenizer& tokenizer,
             const MaskKey& key) const override {
    classes_->label(batch, from, tokenizer, key);
    for (size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
      // A sequence of the tail has no question.
      const bool is_real = s < batch.samples.size();
      const auto place = is_real ? static_cast<int32_t>(from.values(batch.samples[s]).front()) : 0;
      batch.label_rows.push_back(batch.cu_seqlens[s] + place);
    }
  }

  std::vector<TokenPlaces> places(const Example& example,
                                  const Tokenizer& tokenizer,
                                  int64_t max_length) const override {
    const PromptedExample prompted =
        prompt().apply(example, tokenizer, max_length - virtual_tokens_.n, Offsets::keep);
    TokenPlaces places;
    for (int64_t i = 0; i < virtual_tokens_.n; ++i)
      places.push_back({.id = virtual_tokens_.first + static_cast<int32_t>(i), .bytes = {}});
    for (size_t i = 0; i < prompted.ids.size(); ++i)
      places.push_back({.id = prompted.ids[i],
                        .text = prompted.places[i].text,
                        .bytes = prompted.places[i].bytes});
    return {places};
  }
  std::vector<AskedToken> asked_tokens(const MicroBatch& batch,
                                       size_t s,
                                       const Tokenizer& /*tokenizer*/) const override {
    const auto place = static_cast<size_t>(batch.label_rows[s] - batch.cu_seqlens[s]);
    const int32_t label = batch.labels.empty() ? -1 : batch.labels[s];
    if (label < 0) return {{.token = place, .target = {}}};
    const auto& words = config_.words[static_cast<size_t>(label)];
    return {{.token = place, .target = fmt::format("{}", words.front())}};
  }
  std::string answer(const Example& example) const override { return classes_->answer(example); }
  std::string answer(const TokenizedDataset& data, int64_t sequence) const override {
    return classes_->answer(data, sequence);
  }

  std::unique_ptr<Scorer> scorer(const TokenizedDataset& data,
                                 const Tokenizer& tokenizer) const override {
    return classes_->scorer(data, tokenizer);
  }
  std::vector<std::string> metric_names() const override { return classes_->metric_names(); }

  void write(HfConfig& config) const override {
    drop_classifier_keys(config);
    config.set_labels(scheme().labels.names());
    if (scheme().has_pairs.value_or(false)) config.set(kPairsKey, true);
    if (!config_.head.labels.words.empty()) config.set(kPromptKey, to_json(config_));
  }
  std::string next_commands(const std::string& model) const override {
    return classes_->next_commands(model);
  }

 private:
  const PromptTemplate& prompt() const {
    FERRY_CHECK(template_, "a prompt without a tokenizer");
    return *template_;
  }

  void check_labels() const {
    const bool is_single = scheme().problem == ProblemType::single_label ||
                           scheme().problem == ProblemType::unlabelled;
    if (!is_single || scheme().labels.size() == 0)
      throw Error(Fault::data, "data.labels",
                  "a prompt is for texts with one label each, and these have none or others",
                  "--label-column names the column of the labels");
  }

  std::shared_ptr<const Task> classes_;  ///< labels of texts, however they are told
  VirtualTokens virtual_tokens_;
  PromptConfig config_;
  int64_t n_words_ = 0;  ///< the ids of soft tokens begin here
  std::optional<PromptTemplate> template_;
};

/** The template shows a second text, whatever the data have. */
bool shows_pairs(const std::string& text) {
  return std::ranges::any_of(read_template(text), [](const TemplatePart& part) {
    return part.kind == TemplatePartKind::text && part.text == 1;
  });
}

std::shared_ptr<const Task> make_prompt_task(LabelScheme scheme, const TaskSettings& settings) {
  if (!settings.prompt)
    return std::make_shared<PromptClassification>(std::move(scheme), settings.virtual_tokens,
                                                  PromptConfig());
  scheme.has_pairs = shows_pairs(settings.prompt->text);
  return std::make_shared<PromptClassification>(std::move(scheme), settings, *settings.prompt);
}

/** A trained model's prompt, or one that a language model is asked with as it is. */
std::shared_ptr<const Task> prompt_of_model(const HfConfig& config, const TaskSettings& settings) {
  const auto written = read_prompt_config(config);
  LabelScheme scheme = {.problem = ProblemType::single_label};
  if (!settings.prompt) {
    FERRY_CHECK(written, "'{}' has no prompt", config.origin());
    scheme.labels = LabelMap(config.id2label);
    return std::make_shared<PromptClassification>(std::move(scheme), settings.virtual_tokens,
                                                  *written);
  }
  PromptSettings its = *settings.prompt;
  if (written && (!its.replaces_model || its.text.empty())) {
    its.text = written->text;
    its.tokens = written->head.labels.tokens;
    its.is_soft = written->head.is_soft;
    its.verbalizer = {.by_name = {}, .by_order = written->words};
    scheme.labels = LabelMap(config.id2label);
  } else {
    if (its.verbalizer.by_name.empty())
      throw Error(Fault::usage, "config.verbalizer",
                  "the labels of a model that was not trained with them have no names",
                  R"(name them: --verbalizer '{"negative": ["bad"], "positive": ["good"]}')");
    std::vector<std::string> names;
    for (const auto& [name, words] : its.verbalizer.by_name)
      names.push_back(name);
    scheme.labels = LabelMap(std::move(names));
  }
  scheme.has_pairs = shows_pairs(its.text);
  return std::make_shared<PromptClassification>(std::move(scheme), settings, its);
}

}  // namespace

void VirtualTokens::prepend(std::vector<int32_t>& ids) const {
  ids.insert(ids.begin(), static_cast<size_t>(n), first);
  std::iota(ids.begin(), ids.begin() + n, first);
}

void VirtualTokens::prepend(TokenizedExample& sample) const {
  prepend(sample.ids);
  if (!sample.type_ids.empty())
    sample.type_ids.insert(sample.type_ids.begin(), static_cast<size_t>(n), 0);
}

TaskKind prompt_classification_kind() {
  return {.name = kPromptTask,
          .head = HeadKind::prompt,
          .rows = {},
          .make = make_prompt_task,
          .of_model = prompt_of_model};
}

}  // namespace ferry
