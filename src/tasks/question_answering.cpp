#include "src/tasks/question_answering.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/tasks/answer_text.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** In config.json: task_specific_params has an object for the task, and that says whether some
 * questions of the training data had no answer. */
constexpr const char *kParams = "task_specific_params", *kTask = "question-answering",
                     *kUnanswered = "has_unanswered";

bool says_unanswered(const HfConfig& config) {
  const auto params = config.fields().find(kParams);
  if (!params || !params->is_object()) return false;
  const auto of_task = params->find(kTask);
  return of_task && of_task->is_object() && of_task->flag(kUnanswered, false);
}

constexpr size_t kN_best = 20;  // as transformers: starts, ends and answers that are looked at

/** How the tokens of a question and its context fall into windows: each has the question, the
 * special tokens and a part of the context. */
struct Windows {
  size_t n_before = 0, n_context = 0, n_after = 0;  ///< tokens of the whole: (n_before + ...)
  size_t room = 0;                                  ///< for tokens of the context in a window
  size_t step = 1;  ///< tokens of the context from a window's first to the next one's

  size_t n_windows() const {
    return n_context <= room ? 1 : 1 + (n_context - room + step - 1) / step;
  }
  size_t begin(size_t window) const { return window * step; }
  size_t end(size_t window) const { return std::min(window * step + room, n_context); }

  /** The window's own of `all`, which has something for each token of the whole. */
  template <typename T>
  std::vector<T> tokens_of(size_t window, const std::vector<T>& all) const {
    const auto at = [&](size_t i) { return all.begin() + static_cast<std::ptrdiff_t>(i); };
    std::vector<T> tokens(all.begin(), at(n_before));
    tokens.insert(tokens.end(), at(n_before + begin(window)), at(n_before + end(window)));
    tokens.insert(tokens.end(), at(n_before + n_context), all.end());
    return tokens;
  }
};

/** `whole` has offsets. At least one token of the context is new in each window. */
Windows windows_of(const Encoding& whole, int64_t max_length, int64_t doc_stride) {
  const auto first = std::ranges::find(whole.texts, int8_t{1});
  const auto last = std::find(whole.texts.rbegin(), whole.texts.rend(), int8_t{1}).base();
  Windows windows;
  windows.n_before = static_cast<size_t>(first - whole.texts.begin());
  windows.n_after = first == whole.texts.end() ? 0 : static_cast<size_t>(whole.texts.end() - last);
  windows.n_context = whole.ids.size() - windows.n_before - windows.n_after;
  const size_t n_fixed = windows.n_before + windows.n_after;
  const auto length = static_cast<size_t>(max_length), shared = static_cast<size_t>(doc_stride);
  windows.room = length - std::min(n_fixed, length);
  if (windows.room > 0) windows.step = windows.room - std::min(shared, windows.room - 1);
  return windows;
}

[[noreturn]] void refuse_question(const Example& example, size_t n_tokens, int64_t max_length) {
  constexpr size_t kShown = 60;
  std::string start = example.text.substr(0, kShown);
  start.resize(std::min(first_invalid_utf8(start), start.size()));
  throw Error(
      Fault::data, "data.tokenize",
      fmt::format("{}the question '{}{}' has {} tokens with the special ones, max_length is {}",
                  example.place.empty() ? "" : example.place + ": ", escaped(start),
                  start.size() < example.text.size() ? "..." : "", n_tokens, max_length),
      "its context has no room beside it: raise max_length, or shorten the question");
}

/** A place that the model may mean, by its first and last token. */
struct Candidate {
  float start = 0, end = 0;         ///< logits
  std::optional<TextRange> answer;  ///< nothing: the question has no answer
  float score() const { return start + end; }
};

/** Places of the largest of every second value, the best first; of equals the earlier. */
std::vector<size_t> best_places(std::span<const float> logits, size_t offset) {
  std::vector<size_t> places(logits.size() / 2);
  std::iota(places.begin(), places.end(), size_t{0});
  const size_t n = std::min(kN_best, places.size());
  std::ranges::partial_sort(
      places, places.begin() + static_cast<std::ptrdiff_t>(n), [&](size_t a, size_t b) {
        const float of_a = logits[2 * a + offset], of_b = logits[2 * b + offset];
        return of_a > of_b || (of_a == of_b && a < b);
      });
  places.resize(n);
  return places;
}

/** Windows of an example come one after another, so it keeps the candidates of one example. */
class AnswerScorer : public Scorer {
 public:
  AnswerScorer(const TokenizedDataset& data,
               const Tokenizer& tokenizer,
               const TaskSettings& settings,
               bool has_unanswered)
      : data_(data),
        tokenizer_(tokenizer),
        settings_(settings),
        may_be_unanswered_(has_unanswered || (data.has_labels() && has_unanswered_question())) {}

  void add(const MicroBatch& batch,
           std::span<const float> logits,
           const TakeAnswer& take) override {
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const int64_t sample = batch.samples[i];
      if (data_.example_of(sample) != place_) {
        finish(take);
        begin_example(sample);
      }
      add_window(static_cast<size_t>(sample - first_sample_),
                 logits.subspan(2 * static_cast<size_t>(batch.cu_seqlens[i]),
                                2 * static_cast<size_t>(data_.n_ids(sample))));
    }
  }

  void finish(const TakeAnswer& take) override {
    if (place_ < 0) return;
    Answer answer = answer_of_example();
    if (take) take(std::move(answer));
    place_ = -1;
  }

  Metrics metrics(double /*loss*/) const override {
    const double n = static_cast<double>(std::max<int64_t>(n_scored_, 1));
    return {{"exact_match", 100 * exact_sum_ / n}, {"f1", 100 * f1_sum_ / n}};
  }

 private:
  bool has_unanswered_question() const {
    int64_t seen = -1;
    for (int64_t i = 0; i < data_.n_sequences(); ++i) {
      const int64_t place = data_.example_of(i);
      if (place != seen && data_.example(place).label.answers.empty()) return true;
      seen = place;
    }
    return false;
  }

  const Example& example() const { return example_; }

  void begin_example(int64_t sample) {
    place_ = data_.example_of(sample);
    example_ = data_.example(place_);
    first_sample_ = sample;
    tokenizer_.encode_pair(example().text, *example().text_pair, Tokenizer::kNoLimit, whole_,
                           Offsets::keep);
    // The first window is full where there is a second.
    windows_ = windows_of(whole_, data_.n_ids(sample), settings_.doc_stride);
    candidates_.clear();
    none_.reset();
  }

  /** `logits`: (tokens of the window, 2). */
  void add_window(size_t window, std::span<const float> logits) {
    const Candidate none = {.start = logits[0], .end = logits[1], .answer = std::nullopt};
    if (!none_ || none.score() < none_->score()) none_ = none;
    const size_t n_context = windows_.end(window) - windows_.begin(window);
    const auto is_context = [&](size_t token) {
      return token >= windows_.n_before && token < windows_.n_before + n_context;
    };
    const auto span_of_token = [&](size_t token) {
      return whole_.offsets[windows_.begin(window) + token];
    };
    const auto ends = best_places(logits, 1);
    for (size_t start : best_places(logits, 0))
      for (size_t end : ends) {
        if (!is_context(start) || !is_context(end) || end < start ||
            end - start >= static_cast<size_t>(settings_.max_answer_length))
          continue;
        candidates_.push_back(
            {.start = logits[2 * start],
             .end = logits[2 * end + 1],
             .answer = TextRange{span_of_token(start).begin, span_of_token(end).end}});
      }
    keep_best();
  }

  void keep_best() {
    std::ranges::stable_sort(candidates_, std::greater<>(), &Candidate::score);
    if (candidates_.size() > kN_best) candidates_.resize(kN_best);
  }

  /** The place that the model means, and its probability among the best. */
  std::pair<Candidate, double> choose() const {
    std::vector<Candidate> all = candidates_;
    if (may_be_unanswered_ || all.empty()) all.push_back(*none_);
    const auto text_of = [&](const Candidate& c) {
      return c.answer ? part_of(*example().text_pair, *c.answer) : std::string_view();
    };
    const auto answered =
        std::ranges::find_if(all, [&](const Candidate& c) { return !text_of(c).empty(); });
    const bool is_none =
        answered == all.end() || (may_be_unanswered_ && none_->score() > answered->score());
    const Candidate& chosen = is_none ? all.back() : *answered;
    const float top = std::ranges::max_element(all, {}, &Candidate::score)->score();
    double sum = 0;
    for (const Candidate& c : all)
      sum += std::exp(static_cast<double>(c.score() - top));
    Candidate out = chosen;
    if (is_none) out.answer.reset();
    return {out, std::exp(static_cast<double>(chosen.score() - top)) / sum};
  }

  /** Exact match and F1 against the nearest of the right answers. */
  std::pair<double, double> score(std::string_view answer) const {
    std::vector<std::string_view> right;
    for (const TextRange& range : example().label.answers)
      if (const auto text = part_of(*example().text_pair, range); !words_that_count(text).empty())
        right.push_back(text);
    if (right.empty()) right.emplace_back();  // SQuAD 2: no answer is the right one
    double exact = 0, f1 = 0;
    for (std::string_view text : right) {
      exact = std::max(exact, is_exact_match(text, answer) ? 1.0 : 0.0);
      f1 = std::max(f1, word_f1(text, answer));
    }
    return {exact, f1};
  }

  Answer answer_of_example() {
    const auto [chosen, probability] = choose();
    const std::string& context = *example().text_pair;
    const std::string_view text =
        chosen.answer ? part_of(context, *chosen.answer) : std::string_view();
    const auto say = [](std::string_view words) {
      return words.empty() ? std::string("no answer") : escaped(words);
    };
    const auto place = [&](uint32_t byte) {
      return count_characters(std::string_view(context).substr(0, byte));
    };
    Answer answer = {.example = place_,
                     .words = fmt::format("{} ({:.2f})", say(text), probability)};
    ordered_json& predicted = *answer.predicted;
    if (!example().id.empty()) predicted["id"] = (*answer.compared)["id"] = example().id;
    predicted["answer"] = text;
    predicted["score"] = probability;
    predicted["start"] = chosen.answer ? ordered_json(place(chosen.answer->begin)) : ordered_json();
    predicted["end"] = chosen.answer ? ordered_json(place(chosen.answer->end)) : ordered_json();
    if (!data_.has_labels()) return answer;
    const auto [exact, f1] = score(text);
    ++n_scored_;
    exact_sum_ += exact;
    f1_sum_ += f1;
    ordered_json& compared = *answer.compared;
    compared["label"] = ordered_json::array();
    for (const TextRange& range : example().label.answers)
      compared["label"].push_back(part_of(context, range));
    compared["predicted"] = text;
    compared["score"] = probability;
    compared["exact_match"] = exact;
    compared["f1"] = f1;
    const auto& right = example().label.answers;
    answer.truth = say(right.empty() ? std::string_view() : part_of(context, right.front()));
    return answer;
  }

  const TokenizedDataset& data_;
  const Tokenizer& tokenizer_;
  TaskSettings settings_;
  bool may_be_unanswered_;
  // Of the example whose windows are coming in.
  int64_t place_ = -1, first_sample_ = 0;
  Example example_;
  Encoding whole_;
  Windows windows_;
  std::vector<Candidate> candidates_;  ///< at most kN_best, the best first
  std::optional<Candidate> none_;      ///< the least likely "no answer" of all windows
  int64_t n_scored_ = 0;
  double exact_sum_ = 0, f1_sum_ = 0;
};

class QuestionAnswering : public Task {
 public:
  QuestionAnswering(LabelScheme scheme, const TaskSettings& settings)
      : Task(std::move(scheme)), settings_(settings) {}

  std::string_view name() const override { return "question-answering"; }
  LossKind loss() const override { return LossKind::question_answering; }
  int64_t n_labels() const override { return 2; }  // starts, ends
  int64_t setting_of_samples() const override {
    return static_cast<int64_t>(settings_.long_prompts != LongPrompts::refuse);
  }

  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    thread_local Encoding whole;
    tokenizer.encode_pair(example.text, *example.text_pair, Tokenizer::kNoLimit, whole,
                          Offsets::keep);
    const Windows windows = windows_of(whole, max_length, settings_.doc_stride);
    if (windows.room == 0) {
      if (settings_.long_prompts != LongPrompts::refuse) return;
      refuse_question(example, windows.n_before + windows.n_after, max_length);
    }
    const auto tokens = tokens_of_answer(whole, windows, example.label.answers);
    for (size_t w = 0; w < windows.n_windows(); ++w) {
      const size_t begin = windows.begin(w), end = windows.end(w);
      TokenizedExample& sample = out.emplace_back();
      sample.ids = windows.tokens_of(w, whole.ids);
      sample.type_ids = windows.tokens_of(w, whole.type_ids);
      const bool has_all = tokens && tokens->first >= begin && tokens->second < end;
      const auto in_window = [&](size_t token) {
        return static_cast<int32_t>(windows.n_before + token - begin);
      };
      sample.labels = has_all ? std::vector{in_window(tokens->first), in_window(tokens->second)}
                              : std::vector<int32_t>{0, 0};
    }
  }

  bool shares_tokens() const override { return true; }
  std::vector<TokenPlaces> places(const Example& example,
                                  const Tokenizer& tokenizer,
                                  int64_t max_length) const override {
    Encoding encoding;
    tokenizer.encode_pair(example.text, *example.text_pair, Tokenizer::kNoLimit, encoding,
                          Offsets::keep);
    const Windows windows = windows_of(encoding, max_length, settings_.doc_stride);
    const TokenPlaces whole = places_of(encoding);
    std::vector<TokenPlaces> places;
    for (size_t w = 0; windows.room > 0 && w < windows.n_windows(); ++w)
      places.push_back(windows.tokens_of(w, whole));
    return places;
  }
  std::vector<AskedToken> asked_tokens(const MicroBatch& batch,
                                       size_t s,
                                       const Tokenizer& /*tokenizer*/) const override {
    const auto first = static_cast<size_t>(batch.labels[2 * s]);
    const auto last = static_cast<size_t>(batch.labels[2 * s + 1]);
    std::vector<AskedToken> asked;
    for (size_t i = first; i <= last; ++i)
      asked.push_back({i, first == 0 ? "no answer here" : ""});
    return asked;
  }
  FieldNames field_names(const Example& /*example*/) const override {
    return {.text = "question", .text_pair = "context", .label = "answers"};
  }
  std::string answer(const Example& example) const override {
    const auto& answers = example.label.answers;
    return answers.empty() ? "no answer"
                           : std::string(part_of(example.text_pair.value_or(""), answers.front()));
  }
  std::string labels_in_words(const Example& example) const override {
    std::string answers;
    for (const TextRange& range : example.label.answers)
      answers += (answers.empty() ? "" : " | ") + std::string(part_of(*example.text_pair, range));
    return answers.empty() ? "none" : answers;
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& from,
             const Tokenizer& /*tokenizer*/,
             const MaskKey& /*key*/) const override {
    for (int64_t sample : batch.samples) {
      const auto labels = from.labels(sample);
      batch.labels.insert(batch.labels.end(), labels.begin(), labels.end());
    }
    // Each window holds both of its tokens.
    batch.n_label_items = batch.n_end_items = batch.n_real_seqs;
  }

  std::unique_ptr<Scorer> scorer(const TokenizedDataset& data,
                                 const Tokenizer& tokenizer) const override {
    return std::make_unique<AnswerScorer>(data, tokenizer, settings_, scheme().has_unanswered);
  }
  std::vector<std::string> metric_names() const override { return {"loss", "exact_match", "f1"}; }

  void write(HfConfig& config) const override {
    drop_classifier_keys(config);
    config.set_labels({"LABEL_0", "LABEL_1"});  // transformers gives the head as many outputs
    ordered_json params = config.json().value(kParams, ordered_json());
    if (!params.is_object()) params = ordered_json::object();
    params[kTask] = {{kUnanswered, scheme().has_unanswered}};
    config.set(kParams, std::move(params));
  }

  std::string next_commands(const std::string& model) const override {
    return fmt::format(
        "next: ferry predict --model {0} --pairs \"a question\" \"a text that answers it\"\n"
        "      ferry export --model {0} --output DIR\n",
        model);
  }

 private:
  /** The first and last token of the context that the first answer has a part in. */
  static std::optional<std::pair<size_t, size_t>> tokens_of_answer(
      const Encoding& whole, const Windows& windows, std::span<const TextRange> answers) {
    if (answers.empty()) return std::nullopt;
    const auto offsets = std::span(whole.offsets).subspan(windows.n_before, windows.n_context);
    std::optional<std::pair<size_t, size_t>> tokens;
    for (size_t t = 0; t < offsets.size(); ++t) {
      if (offsets[t].end <= answers.front().begin || offsets[t].begin >= answers.front().end)
        continue;
      if (!tokens) tokens = {t, t};
      tokens->second = t;
    }
    return tokens;
  }

  TaskSettings settings_;
};

std::shared_ptr<const Task> trained_reader(const HfConfig& config, const TaskSettings& settings) {
  return std::make_shared<QuestionAnswering>(LabelScheme{.problem = ProblemType::answers,
                                                         .labels = {},
                                                         .has_pairs = true,
                                                         .has_unanswered = says_unanswered(config)},
                                             settings);
}

}  // namespace

TaskKind question_answering_kind() {
  return {
      .name = "question-answering",
      .head = HeadKind::question_answering,
      .rows = {.form = RowForm::questions, .labels = LabelUse::required},
      .make = [](LabelScheme scheme, const TaskSettings& settings) -> std::shared_ptr<const Task> {
        return std::make_shared<QuestionAnswering>(std::move(scheme), settings);
      },
      .of_model = trained_reader};
}

}  // namespace ferry
