#include "src/tasks/preference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/base/error.h"
#include "src/tasks/language_model.h"

namespace ferry {
namespace {

/** One of the two answers of an example, as an example of its own. */
Example half_of(const Example& pair, bool is_chosen) {
  Example half;
  half.place = pair.place;
  half.is_chat = pair.is_chat;
  if (pair.is_chat) {
    half.text = is_chosen ? pair.text : pair.rejected.value();
  } else {
    half.text = pair.text;
    half.text_pair = is_chosen ? pair.text_pair : pair.rejected;
  }
  return half;
}

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}

/** Means over pairs, by the names that TRL has for them. */
class Means {
 public:
  void add(std::string_view name, double value) {
    const auto found = std::ranges::find(all_, name, &Mean::name);
    Mean& mean = found == all_.end() ? all_.emplace_back(Mean{.name = std::string(name)}) : *found;
    mean.sum += value;
    ++mean.n;
  }
  Metrics metrics() const {
    Metrics metrics;
    for (const auto& [name, sum, n] : all_)
      metrics.emplace_back(name, sum / static_cast<double>(n));
    return metrics;
  }

 private:
  struct Mean {
    std::string name;
    double sum = 0;
    int64_t n = 0;
  };
  std::vector<Mean> all_;
};

constexpr std::string_view kAccuracies = "rewards/accuracies", kMargins = "rewards/margins",
                           kChosen = "rewards/chosen", kRejected = "rewards/rejected",
                           kChosenLogp = "logps/chosen", kRejectedLogp = "logps/rejected",
                           kChosenLogits = "logits/chosen", kRejectedLogits = "logits/rejected",
                           kDivergence = "kl";

void add_rewards(double chosen, double rejected, Means& means) {
  means.add(kAccuracies, chosen > rejected);
  means.add(kMargins, chosen - rejected);
  means.add(kChosen, chosen);
  means.add(kRejected, rejected);
}

class PreferenceScorer : public Scorer {
 public:
  explicit PreferenceScorer(const PreferenceRule& rule) : rule_(rule) {}

  void add(const MicroBatch& batch,
           std::span<const float> sums,
           const TakeAnswer& /*take*/) override {
    double gained = 0;
    for (size_t s = 0; s + 1 < batch.samples.size(); s += 2) {
      const Found chosen = found(batch, sums, s), rejected = found(batch, sums, s + 1);
      if (rule_.kind == PreferenceKind::kto) {
        add_answer(chosen);
        gained += rejected.log_p - rejected.reference;
        continue;
      }
      add_rewards(reward(chosen), reward(rejected), means_);
      means_.add(kChosenLogp, chosen.log_p);
      means_.add(kRejectedLogp, rejected.log_p);
      means_.add(kChosenLogits, chosen.mean_logit / chosen.n);
      means_.add(kRejectedLogits, rejected.mean_logit / rejected.n);
      if (rule_.kind == PreferenceKind::orpo) add_odds(chosen, rejected);
    }
    if (rule_.kind == PreferenceKind::kto)
      means_.add(kDivergence,
                 std::max(0.0, gained / static_cast<double>(batch.samples.size() / 2)));
  }
  Metrics metrics(double /*loss*/) const override {
    Metrics all = means_.metrics();
    const auto reward_of = [&](std::string_view name) {
      const auto found = std::ranges::find(all, name, &Metrics::value_type::first);
      return found == all.end() ? 0.0 : found->second;
    };
    if (rule_.kind == PreferenceKind::kto)
      all.emplace_back(kMargins, reward_of(kChosen) - reward_of(kRejected));
    return all;
  }

 private:
  struct Found {
    double log_p = 0, n = 1, mean_logit = 0, reference = 0;
    bool is_good = false;
  };

  static Found found(const MicroBatch& batch, std::span<const float> sums, size_t s) {
    const auto sum = [&](PreferenceSum which) -> double {
      return sums[s * static_cast<size_t>(kPreferenceSums) + static_cast<size_t>(which)];
    };
    const auto input = [&](PreferenceInput which) -> double {
      return batch
          .preferences[s * static_cast<size_t>(kPreferenceInputs) + static_cast<size_t>(which)];
    };
    return {.log_p = sum(PreferenceSum::log_p),
            .n = std::max(1.0, sum(PreferenceSum::n_tokens)),
            .mean_logit = sum(PreferenceSum::mean_logit),
            .reference = input(PreferenceInput::reference),
            .is_good = input(PreferenceInput::is_good) > 0};
  }

  double reward(const Found& its) const {
    const bool takes_mean =
        rule_.kind == PreferenceKind::orpo || rule_.kind == PreferenceKind::simpo;
    return rule_.beta * (takes_mean ? its.log_p / its.n : its.log_p - its.reference);
  }

  /** The names that TRL has for good and bad answers. */
  void add_answer(const Found& its) {
    means_.add(its.is_good ? kChosen : kRejected, reward(its));
    means_.add(its.is_good ? kChosenLogp : kRejectedLogp, its.log_p);
    means_.add(its.is_good ? kChosenLogits : kRejectedLogits, its.mean_logit / its.n);
  }

  void add_odds(const Found& chosen, const Found& rejected) {
    constexpr double kMost = -1e-9;
    const auto log_odds = [&](const Found& its) {
      const double mean = std::min(its.log_p / its.n, kMost);
      return mean - std::log(-std::expm1(mean));
    };
    const double odds = log_odds(chosen) - log_odds(rejected);
    means_.add("log_odds_chosen", odds);
    means_.add("log_odds_ratio", std::log(sigmoid_of(odds)));
  }

  PreferenceRule rule_;
  Means means_;
};

/** A sample is a prompt with two answers, each a sequence of its own. */
class ComparedAnswers : public Task {
 public:
  using Task::Task;

  bool compares_answers() const override { return true; }
  bool answers_texts() const override { return false; }
  Example seen_in(Example example, int64_t sequence) const override {
    return half_of(example, is_chosen(sequence));
  }
  std::string_view name_of_sequence(int64_t sequence) const override {
    return is_chosen(sequence) ? "the chosen answer" : "the rejected answer";
  }
};

class Preference : public ComparedAnswers {
 public:
  Preference(LabelScheme scheme, const TaskSettings& settings)
      : ComparedAnswers(std::move(scheme)),
        rule_(settings.preference),
        answers_(causal_lm_kind().make({}, settings)) {}

  std::string_view name() const override { return is_kto() ? "kto" : "preference"; }
  LossKind loss() const override { return LossKind::preference; }
  int64_t n_labels() const override { return 0; }
  bool has_reference() const override { return ferry::has_reference(rule_.kind); }

  int64_t setting_of_samples() const override { return answers_->setting_of_samples(); }
  std::vector<std::string> take_notes() const override { return answers_->take_notes(); }
  bool depends_on_day() const override { return answers_->depends_on_day(); }
  std::string chat_template() const override { return answers_->chat_template(); }

  /** The prompt with the chosen answer, then with the rejected one, or with kto that to another
   * prompt. The labels are the places where the answer begins and ends, and whether it is good. */
  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    std::vector<TokenizedExample> both;
    for (const bool is_chosen : {true, false}) {
      std::vector<TokenizedExample> one;
      answers_->encode(half_of(example, is_chosen), tokenizer, max_length, one);
      if (one.empty()) return;
      TokenizedExample& its = one.front();
      const auto n = static_cast<int32_t>(its.ids.size());
      const bool is_chat = its.labels.size() > 1;
      const int32_t begin = std::max(its.labels.front(), 1);
      its.labels = {begin, is_chat ? its.labels.back() : n};
      if (is_kto()) its.labels.push_back(is_chosen && example.label.class_id == 1);
      both.push_back(std::move(its));
    }
    std::ranges::move(both, std::back_inserter(out));
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& from,
             const Tokenizer& /*tokenizer*/,
             const MaskKey& /*key*/) const override {
    label_next_tokens(batch);
    for (size_t s = 0; s < batch.samples.size(); ++s) {
      const auto answer = from.labels(batch.samples[s]);
      const bool is_chosen = ferry::is_chosen(static_cast<int64_t>(s));
      const auto begin = static_cast<size_t>(batch.cu_seqlens[s]),
                 end = static_cast<size_t>(batch.cu_seqlens[s + 1]);
      // A token's label is the next one.
      const int32_t first = is_chosen && learns_prompts(rule_.kind) ? 1 : answer[0];
      for (size_t i = begin; i < end; ++i) {
        const auto next = static_cast<int32_t>(i - begin) + 1;
        if (next < first || next >= answer[1]) batch.labels[i] = kNoLabel;
      }
      if (is_chosen)
        batch.n_end_items +=
            std::count_if(batch.labels.begin() + static_cast<std::ptrdiff_t>(begin),
                          batch.labels.begin() + static_cast<std::ptrdiff_t>(end),
                          [](int32_t label) { return label != kNoLabel; });
      batch.preferences.push_back(from.reference(batch.samples[s]));
      batch.preferences.push_back(static_cast<float>(answer[0] - 1));
      batch.preferences.push_back(is_kto() ? static_cast<float>(answer[2]) : 0);
    }
    batch.n_label_items = batch.n_real_seqs / 2;
  }

  std::vector<AskedToken> asked_tokens(const MicroBatch& batch,
                                       size_t s,
                                       const Tokenizer& tokenizer) const override {
    return answers_->asked_tokens(batch, s, tokenizer);
  }
  bool is_unasked(const TokenizedDataset& data, int64_t sequence) const override {
    return learnt(data, sequence).empty();
  }
  bool learns_text() const override { return true; }
  std::vector<text::Span> learnt(const TokenizedDataset& data, int64_t sequence) const override {
    const auto answer = data.labels(sequence);
    return {{static_cast<uint32_t>(answer[0]), static_cast<uint32_t>(answer[1])}};
  }
  FieldNames field_names(const Example& example) const override {
    if (example.is_chat) return {.text = "chat"};
    return {.text = "prompt", .text_pair = "answer"};
  }
  std::string_view name_of_sequence(int64_t sequence) const override {
    if (is_kto()) return is_chosen(sequence) ? "the answer" : "an answer to another prompt";
    return ComparedAnswers::name_of_sequence(sequence);
  }

  std::unique_ptr<Scorer> scorer(const TokenizedDataset& /*data*/,
                                 const Tokenizer& /*tokenizer*/) const override {
    return std::make_unique<PreferenceScorer>(rule_);
  }
  std::vector<std::string> metric_names() const override {
    std::vector<std::string> names = {"loss"};
    if (!is_kto()) names.emplace_back(kAccuracies);
    for (const std::string_view name :
         {kMargins, kChosen, kRejected, kChosenLogp, kRejectedLogp, kChosenLogits, kRejectedLogits})
      names.emplace_back(name);
    if (is_kto()) names.emplace_back(kDivergence);
    if (rule_.kind == PreferenceKind::orpo)
      names.insert(names.end(), {"log_odds_chosen", "log_odds_ratio"});
    return names;
  }
  /** At first both answers are as likely as they were. */
  double guessing_loss() const override {
    const bool is_sigmoid =
        rule_.kind == PreferenceKind::sigmoid || rule_.kind == PreferenceKind::sigmoid_norm;
    return is_sigmoid ? std::log(2.0) : 0;
  }
  double worrying_rise() const override { return 10; }

  void write(HfConfig& /*config*/) const override {}
  std::string next_commands(const std::string& model) const override {
    return answers_->next_commands(model);
  }

 private:
  bool is_kto() const { return rule_.kind == PreferenceKind::kto; }

  PreferenceRule rule_;
  std::shared_ptr<const Task> answers_;  ///< a prompt with one answer is its sample
};

class RewardScorer : public Scorer {
 public:
  void add(const MicroBatch& batch,
           std::span<const float> rewards,
           const TakeAnswer& /*take*/) override {
    for (size_t s = 0; s + 1 < batch.samples.size(); s += 2) {
      const double chosen = rewards[s], rejected = rewards[s + 1];
      means_.add("accuracy", chosen > rejected);
      means_.add("margin", chosen - rejected);
      means_.add("mean_reward", (chosen + rejected) / 2);
      least_ = std::min({least_, chosen, rejected});
      most_ = std::max({most_, chosen, rejected});
    }
  }
  Metrics metrics(double /*loss*/) const override {
    Metrics all = means_.metrics();
    all.emplace_back("min_reward", least_);
    all.emplace_back("max_reward", most_);
    return all;
  }

 private:
  Means means_;
  double least_ = HUGE_VAL, most_ = -HUGE_VAL;
};

/** Single answers that are good or bad. */
class Kto : public Preference {
 public:
  Kto(LabelScheme scheme, TaskSettings settings)
      : Preference(std::move(scheme), of_kto(settings)) {}

 private:
  static const TaskSettings& of_kto(TaskSettings& settings) {
    settings.preference.kind = PreferenceKind::kto;
    return settings;
  }
};

/** The whole of a prompt with an answer is a text, which the model gives a number. */
class Reward : public ComparedAnswers {
 public:
  Reward(LabelScheme scheme, const TaskSettings& settings)
      : ComparedAnswers(std::move(scheme)), padding_(settings.padding), chats_(settings.chats) {}

  std::string_view name() const override { return "reward"; }
  LossKind loss() const override { return LossKind::reward; }
  int64_t n_labels() const override { return 1; }
  double guessing_loss() const override { return std::log(2.0); }

  int64_t setting_of_samples() const override {
    const uint64_t key = chats_ ? chats_->key() << 32 : 0;
    return static_cast<int64_t>(key | static_cast<uint32_t>(padding_.value_or(-1)));
  }
  std::vector<std::string> take_notes() const override {
    return chats_ ? chats_->take_notes() : std::vector<std::string>();
  }
  bool depends_on_day() const override { return chats_ && chats_->tells_date(); }

  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    std::vector<TokenizedExample> both;
    for (const bool is_chosen : {true, false}) {
      auto one = encode_one(half_of(example, is_chosen), tokenizer, max_length);
      if (!one) return;
      while (padding_ && one->ids.size() > 1 && one->ids.back() == *padding_)
        one->ids.pop_back();
      one->values = {example.margin};
      both.push_back(std::move(*one));
    }
    std::ranges::move(both, std::back_inserter(out));
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& from,
             const Tokenizer& /*tokenizer*/,
             const MaskKey& /*key*/) const override {
    for (const int64_t sequence : batch.samples)
      batch.values.push_back(from.values(sequence).front());
    batch.n_label_items = batch.n_real_seqs / 2;
  }

  std::unique_ptr<Scorer> scorer(const TokenizedDataset& /*data*/,
                                 const Tokenizer& /*tokenizer*/) const override {
    return std::make_unique<RewardScorer>();
  }
  std::vector<std::string> metric_names() const override {
    return {"loss", "accuracy", "margin", "mean_reward", "min_reward", "max_reward"};
  }

  /** A classifier with one number, as transformers has a regression. */
  void write(HfConfig& config) const override {
    config.set_problem_type(hf_name_of(ProblemType::regression));
    config.set_labels({"LABEL_0"});
    if (padding_) config.set("pad_token_id", *padding_);
  }
  std::string next_commands(const std::string& model) const override {
    return fmt::format(
        "next: ferry predict --model {0} \"a prompt and its answer\"\n      ferry export --model "
        "{0} --output DIR\n",
        model);
  }

 private:
  std::optional<TokenizedExample> encode_one(const Example& half,
                                             const Tokenizer& tokenizer,
                                             int64_t max_length) const {
    if (!half.is_chat) {
      Example whole;
      whole.text = half.text + half.text_pair.value();
      return encode_texts(whole, tokenizer, max_length);
    }
    FERRY_CHECK(chats_, "a chat, and nothing that encodes it");
    auto chat = chats_->encode(chat::unpacked(half.text), tokenizer, max_length,
                               half.place.empty() ? "a chat" : half.place);
    if (!chat) return std::nullopt;
    return TokenizedExample{.ids = std::move(chat->ids), .truncated = chat->was_cut};
  }

  std::optional<int32_t> padding_;
  std::shared_ptr<const chat::ChatEncoder> chats_;
};

template <typename T>
TaskKind kind_of_pairs(std::string_view name, HeadKind head, RowForm form = RowForm::preferences) {
  return {
      .name = name,
      .head = head,
      .rows = {.form = form, .labels = LabelUse::required},
      .make = [](LabelScheme scheme, const TaskSettings& settings) -> std::shared_ptr<const Task> {
        return std::make_shared<T>(std::move(scheme), settings);
      },
      .of_model = [](const HfConfig&, const TaskSettings& settings) -> std::shared_ptr<const Task> {
        return std::make_shared<T>(LabelScheme{.problem = ProblemType::preferences}, settings);
      }};
}

}  // namespace

TaskKind preference_kind() {
  return kind_of_pairs<Preference>("preference", HeadKind::causal_lm);
}

TaskKind kto_kind() {
  return kind_of_pairs<Kto>("kto", HeadKind::causal_lm, RowForm::ratings);
}

TaskKind reward_kind() {
  return kind_of_pairs<Reward>("reward", HeadKind::classification);
}

}  // namespace ferry
