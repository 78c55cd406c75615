#include "src/tasks/token_classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/metrics.h"
#include "src/tasks/entities.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** Appends the words of a text without spaces. Signs before and behind a word are words of their
 * own, as data with tags have them: "(Siemens)." are four. A full stop belongs to a word that has
 * another one, or is one letter: "U.S.", "J." */
void add_words(std::string_view text, uint32_t begin, std::vector<TextRange>& words) {
  constexpr std::string_view kBefore = "([{\"'", kBehind = ".,;:!?)]}\"'";
  const auto add = [&](size_t from, size_t to) {
    if (from < to)
      words.push_back({begin + static_cast<uint32_t>(from), begin + static_cast<uint32_t>(to)});
  };
  size_t first = 0, last = text.size();
  while (first < last && kBefore.find(text[first]) != kBefore.npos) {
    add(first, first + 1);
    ++first;
  }
  const auto is_sign = [&] {
    const std::string_view word = text.substr(first, last - first);
    if (word.empty() || kBehind.find(word.back()) == kBehind.npos) return false;
    if (word.back() != '.' || word.size() < 2) return true;
    const bool is_behind_a_sign = kBehind.find(word[word.size() - 2]) != kBehind.npos;
    return is_behind_a_sign || (word.find('.') + 1 == word.size() && word.size() > 2);
  };
  while (is_sign())
    --last;
  add(first, last);
  for (size_t at = last; at < text.size(); ++at)
    add(at, at + 1);
}

/** The words of a text: as the data has them, or between spaces and signs. */
std::vector<TextRange> words_of(const Example& example) {
  if (!example.words.empty()) return example.words;
  constexpr std::string_view kSpace = " \t\r\n";
  std::vector<TextRange> words;
  const std::string_view text = example.text;
  for (size_t at = text.find_first_not_of(kSpace); at != text.npos;) {
    const size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    add_words(text.substr(at, end - at), static_cast<uint32_t>(at), words);
    at = text.find_first_not_of(kSpace, end);
  }
  return words;
}

/** Tokens of an example, and the first of each word, which its tag is read from; -1 of a word that
 * was cut off or that the tokenizer takes for nothing. */
struct EncodedWords {
  Encoding encoding;
  std::vector<int32_t> first_tokens;

  void encode(const Example& example, const Tokenizer& tokenizer, int64_t max_length) {
    std::vector<std::string_view> words;
    for (const TextRange& word : words_of(example))
      words.push_back(part_of(example.text, word));
    tokenizer.encode_words(words, max_length, encoding, first_tokens);
  }
};

/** What a model says of a word. */
struct WordTag {
  int32_t id = -1;  ///< of a word without a token
  float score = 0;  ///< probability
};

WordTag tag_of(std::span<const float> logits) {
  const int32_t best = argmax(logits);
  const float top = logits[static_cast<size_t>(best)];
  double sum = 0;
  for (float l : logits)
    sum += std::exp(static_cast<double>(l - top));
  return {.id = best, .score = static_cast<float>(1 / sum)};
}

class TagScorer : public Scorer {
 public:
  TagScorer(const TokenizedDataset& data, const LabelScheme& scheme, const Tokenizer& tokenizer)
      : data_(data),
        scheme_(scheme),
        tokenizer_(tokenizer),
        n_labels_(static_cast<size_t>(scheme.labels.size())),
        has_entities_(scheme.labels.has_entities()),
        words_(scheme.labels.size()) {}

  void add(const MicroBatch& batch,
           std::span<const float> logits,
           const TakeAnswer& take) override {
    for (size_t i = 0; i < batch.samples.size(); ++i) {
      const auto begin = static_cast<size_t>(batch.cu_seqlens[i]) * n_labels_;
      const int64_t sample = batch.samples[i];
      const auto of_tokens =
          logits.subspan(begin, static_cast<size_t>(data_.n_ids(sample)) * n_labels_);
      if (data_.has_labels()) score(sample, of_tokens);
      if (take) take(answer(sample, of_tokens));
    }
  }

  Metrics metrics(double /*loss*/) const override {
    if (!has_entities_) return {{"accuracy", words_.accuracy()}, {"f1_macro", words_.macro_f1()}};
    return {{"precision", scores_.precision()},
            {"recall", scores_.recall()},
            {"f1", scores_.f1()},
            {"accuracy", scores_.accuracy()}};
  }

 private:
  std::string_view name(int32_t id) const { return scheme_.labels.name(id); }
  std::span<const float> at(std::span<const float> logits, size_t token) const {
    return logits.subspan(token * n_labels_, n_labels_);
  }

  void score(int64_t sample, std::span<const float> logits) {
    std::vector<std::string_view> actual, predicted;
    const auto labels = data_.labels(sample);
    for (size_t t = 0; t < labels.size(); ++t) {
      if (labels[t] == kNoLabel) continue;
      const int32_t best = argmax(at(logits, t));
      words_.add(labels[t], best);
      actual.push_back(name(labels[t]));
      predicted.push_back(name(best));
    }
    if (has_entities_) scores_.add(actual, predicted);
  }

  Answer answer(int64_t sample, std::span<const float> logits) {
    const int64_t place = data_.example_of(sample);
    const Example example = data_.example(place);
    const std::vector<TextRange> words = words_of(example);
    const int64_t n_tokens = data_.n_ids(sample);
    encoded_.encode(example, tokenizer_, n_tokens);
    std::vector<WordTag> tags;
    for (int32_t token : encoded_.first_tokens)
      tags.push_back(token < 0 ? WordTag() : tag_of(at(logits, static_cast<size_t>(token))));

    Answer answer = {.example = place};
    ordered_json of_words = ordered_json::array(), predicted = ordered_json::array();
    for (size_t w = 0; w < words.size(); ++w) {
      of_words.push_back(part_of(example.text, words[w]));
      predicted.push_back(tags[w].id < 0 ? ordered_json() : ordered_json(name(tags[w].id)));
    }
    if (has_entities_)
      (*answer.predicted)["entities"] = say_entities(example, words, tags, answer.words);
    else
      answer.words = say_tags(example, words, tags);
    (*answer.predicted)["words"] = of_words;
    (*answer.predicted)["tags"] = predicted;
    (*answer.compared)["words"] = of_words;
    if (!example.label.tags.empty()) {
      std::vector<WordTag> actual;
      for (int32_t id : example.label.tags) {
        actual.push_back({.id = id});
        (*answer.compared)["label"].push_back(id < 0 ? ordered_json() : ordered_json(name(id)));
      }
      if (has_entities_)
        say_entities(example, words, actual, answer.truth);
      else
        answer.truth = say_tags(example, words, actual);
    }
    (*answer.compared)["predicted"] = predicted;
    return answer;
  }

  /** The entities as JSON; in words "Angela Merkel (PER 0.99), Berlin (LOC 0.98)". */
  ordered_json say_entities(const Example& example,
                            std::span<const TextRange> words,
                            std::span<const WordTag> tags,
                            std::string& in_words) const {
    std::vector<std::string_view> names;
    for (const WordTag& tag : tags)
      names.push_back(tag.id < 0 ? "O" : name(tag.id));
    ordered_json all = ordered_json::array();
    for (const Entity& entity : entities_of(names)) {
      const auto first = static_cast<size_t>(entity.first), last = static_cast<size_t>(entity.last);
      const TextRange range = {words[first].begin, words[last].end};
      double sum = 0;
      for (size_t w = first; w <= last; ++w)
        sum += static_cast<double>(tags[w].score);
      const double score = sum / static_cast<double>(last - first + 1);
      const std::string_view text = example.text;
      all.push_back({{"text", part_of(text, range)},
                     {"label", entity.type},
                     {"start", count_characters(text.substr(0, range.begin))},
                     {"end", count_characters(text.substr(0, range.end))},
                     {"score", score}});
      in_words +=
          fmt::format("{}{} ({}{})", in_words.empty() ? "" : ", ", escaped(part_of(text, range)),
                      entity.type, sum > 0 ? fmt::format(" {:.2f}", score) : "");
    }
    if (in_words.empty()) in_words = "none";
    return all;
  }

  /** "the/DET house/NOUN" */
  std::string say_tags(const Example& example,
                       std::span<const TextRange> words,
                       std::span<const WordTag> tags) const {
    std::string text;
    for (size_t w = 0; w < words.size(); ++w)
      text += fmt::format("{}{}/{}", w ? " " : "", escaped(part_of(example.text, words[w])),
                          tags[w].id < 0 ? "?" : name(tags[w].id));
    return text;
  }

  const TokenizedDataset& data_;
  const LabelScheme& scheme_;
  const Tokenizer& tokenizer_;
  size_t n_labels_;
  bool has_entities_;
  EntityScores scores_;
  ConfusionMatrix words_;
  EncodedWords encoded_;
};

class TokenClassification : public Task {
 public:
  explicit TokenClassification(LabelScheme scheme) : Task(std::move(scheme)) {}

  std::string_view name() const override { return "token-classification"; }
  LossKind loss() const override { return LossKind::token_classification; }
  int64_t n_labels() const override { return std::max<int64_t>(scheme().labels.size(), 1); }
  bool reads_words() const override { return true; }

  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    thread_local EncodedWords encoded;
    encoded.encode(example, tokenizer, max_length);
    TokenizedExample& sample = out.emplace_back();
    sample.ids = encoded.encoding.ids;
    sample.type_ids = encoded.encoding.type_ids;
    sample.truncated = std::ssize(sample.ids) == max_length;
    const std::vector<int32_t>& tags = example.label.tags;
    if (tags.empty()) return;
    sample.labels.assign(sample.ids.size(), kNoLabel);
    const std::vector<int32_t>& first = encoded.first_tokens;
    for (size_t w = 0; w < first.size(); ++w)
      if (first[w] >= 0 && tags[w] >= 0) sample.labels[static_cast<size_t>(first[w])] = tags[w];
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& from,
             const Tokenizer& /*tokenizer*/,
             const MaskKey& /*key*/) const override {
    batch.labels.assign(batch.input_ids.size(), kNoLabel);
    for (size_t s = 0; s < batch.samples.size(); ++s)
      std::ranges::copy(from.labels(batch.samples[s]), batch.labels.begin() + batch.cu_seqlens[s]);
    batch.n_label_items = std::ssize(batch.labels) - std::ranges::count(batch.labels, kNoLabel);
  }

  std::vector<TokenPlaces> places(const Example& example,
                                  const Tokenizer& tokenizer,
                                  int64_t max_length) const override {
    EncodedWords encoded;
    encoded.encode(example, tokenizer, max_length);
    const std::vector<TextRange> words = words_of(example);
    const std::vector<int32_t>& first = encoded.first_tokens;
    TokenPlaces places;
    for (const int32_t id : encoded.encoding.ids)
      places.push_back({.id = id, .bytes = {}});
    // A word's tokens go on until the next word's first one, or to the special ones at the end.
    const SpecialIds& special = tokenizer.special_ids();
    for (size_t w = 0; w < first.size(); ++w) {
      if (first[w] < 0) continue;
      size_t end = places.size();
      for (size_t next = w + 1; next < first.size() && end == places.size(); ++next)
        if (first[next] >= 0) end = static_cast<size_t>(first[next]);
      for (auto t = static_cast<size_t>(first[w]); t < end; ++t)
        if (places[t].id != special.sep && places[t].id != special.eos)
          places[t] = {places[t].id, 0, words[w]};
    }
    return {places};
  }
  std::vector<AskedToken> asked_tokens(const MicroBatch& batch,
                                       size_t s,
                                       const Tokenizer& /*tokenizer*/) const override {
    std::vector<AskedToken> asked;
    const std::span<const int32_t> labels = batch.labels_of(s);
    for (size_t i = 0; i < labels.size(); ++i)
      if (labels[i] != kNoLabel) asked.push_back({i, scheme().labels.name(labels[i])});
    return asked;
  }
  bool is_unasked(const TokenizedDataset& data, int64_t sequence) const override {
    return std::ranges::all_of(data.labels(sequence),
                               [](int32_t label) { return label == kNoLabel; });
  }
  FieldNames field_names(const Example& /*example*/) const override { return {.label = "tags"}; }
  std::string labels_in_words(const Example& example) const override {
    std::string tags;
    for (const int32_t id : example.label.tags)
      tags += (tags.empty() ? "" : " ") + (id < 0 ? "-" : scheme().labels.name(id));
    return tags;
  }

  std::unique_ptr<Scorer> scorer(const TokenizedDataset& data,
                                 const Tokenizer& tokenizer) const override {
    return std::make_unique<TagScorer>(data, scheme(), tokenizer);
  }
  std::vector<std::string> metric_names() const override {
    if (!scheme().labels.has_entities()) return {"loss", "accuracy", "f1_macro"};
    return {"loss", "precision", "recall", "f1", "accuracy"};
  }

  void write(HfConfig& config) const override {
    drop_classifier_keys(config);
    config.set_labels(scheme().labels.names());
  }

  std::string next_commands(const std::string& model) const override {
    return fmt::format(
        "next: ferry predict --model {0} \"a text\"\n      ferry export --model {0} --output DIR\n",
        model);
  }
};

std::shared_ptr<const Task> trained_tagger(const HfConfig& config, const TaskSettings&) {
  if (config.id2label.empty())
    throw Error(Fault::data, "model.open", fmt::format("'{}' has no tags", config.origin()),
                "it is not trained; train it with `ferry train --task token-classification`");
  return std::make_shared<TokenClassification>(LabelScheme{
      .problem = ProblemType::tags, .labels = LabelMap(config.id2label), .has_pairs = false});
}

}  // namespace

TaskKind token_classification_kind() {
  return {.name = "token-classification",
          .head = HeadKind::token_classification,
          .rows = {.form = RowForm::words, .labels = LabelUse::required},
          .make = [](LabelScheme scheme, const TaskSettings&) -> std::shared_ptr<const Task> {
            return std::make_shared<TokenClassification>(std::move(scheme));
          },
          .of_model = trained_tagger};
}

}  // namespace ferry
