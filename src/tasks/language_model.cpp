#include "src/tasks/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/tokens/window_cutter.h"

namespace ferry {
namespace {

/** The loss says all. */
class PerplexityScorer : public Scorer {
 public:
  void add(const MicroBatch& /*batch*/,
           std::span<const float> /*logits*/,
           const TakeAnswer& /*take*/) override {}
  Metrics metrics(double loss) const override { return {{"perplexity", std::exp(loss)}}; }
};

class LanguageModel : public Task {
 public:
  using Task::Task;

  int64_t n_labels() const override { return 0; }
  bool may_be_packed() const override { return true; }
  bool answers_texts() const override { return false; }
  bool wants_logits() const override { return false; }
  std::unique_ptr<Scorer> scorer(const TokenizedDataset& /*data*/,
                                 const Tokenizer& /*tokenizer*/) const override {
    return std::make_unique<PerplexityScorer>();
  }
  std::vector<std::string> metric_names() const override { return {"loss", "perplexity"}; }
};

class MaskedLm : public LanguageModel {
 public:
  MaskedLm(LabelScheme scheme, const TaskSettings& /*settings*/)
      : LanguageModel(std::move(scheme)) {}

  std::string_view name() const override { return "mlm"; }
  LossKind loss() const override { return LossKind::masked_lm; }

  void check(const Tokenizer& tokenizer) const override {
    if (tokenizer.special_ids().mask < 0)
      throw Error(Fault::data, "train.mask", "the tokenizer has no [MASK] token",
                  "task = mlm needs a model that was made for it");
  }

  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    out.push_back(encode_texts(example, tokenizer, max_length));
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& /*from*/,
             const Tokenizer& tokenizer,
             const MaskKey& key) const override {
    const SpecialIds& special = tokenizer.special_ids();
    MaskOptions options;
    options.mask_id = special.mask;
    options.vocab_size = static_cast<int32_t>(tokenizer.vocab_size());
    options.special_ids = {special.cls,  special.sep, special.pad, special.unk,
                           special.mask, special.bos, special.eos};
    std::erase(options.special_ids, -1);
    mask_tokens(batch, options, key);
  }

  bool draws_asked_tokens() const override { return true; }
  std::vector<AskedToken> asked_tokens(const MicroBatch& batch,
                                       size_t s,
                                       const Tokenizer& tokenizer) const override {
    std::vector<AskedToken> asked;
    const std::span<const int32_t> labels = batch.labels_of(s);
    for (size_t i = 0; i < labels.size(); ++i)
      if (labels[i] != kNoLabel) asked.push_back({i, tokenizer.id_to_token(labels[i])});
    return asked;
  }

  void write(HfConfig& config) const override {
    if (config.json().contains(kPairsKey)) config.set(kPairsKey, false);
  }

  std::string next_commands(const std::string& model) const override {
    return fmt::format("next: ferry train --model {} --dataset LABELLED_TEXTS\n", model);
  }
};

class CausalLm : public LanguageModel {
 public:
  CausalLm(LabelScheme scheme, const TaskSettings& settings)
      : LanguageModel(std::move(scheme)),
        long_prompts_(settings.long_prompts),
        virtual_tokens_(settings.virtual_tokens),
        chats_(settings.chats) {}

  std::string_view name() const override { return "causal-lm"; }
  LossKind loss() const override { return LossKind::causal_lm; }

  bool takes_parts() const override { return virtual_tokens_.n == 0; }
  int64_t n_ids(const Tokenizer& tokenizer) const override {
    return virtual_tokens_.end_of_ids(tokenizer.vocab_size());
  }
  int64_t setting_of_samples() const override {
    const uint64_t key = chats_ ? chats_->key() << 2 : 0;
    const auto n_virtual = static_cast<uint64_t>(virtual_tokens_.n) << 32;
    return static_cast<int64_t>((key ^ n_virtual) | static_cast<uint64_t>(long_prompts_));
  }
  std::vector<std::string> take_notes() const override {
    return chats_ ? chats_->take_notes() : std::vector<std::string>();
  }
  bool depends_on_day() const override { return chats_ && chats_->tells_date(); }
  std::string chat_template() const override {
    // A model's own is among its files already.
    return chats_ && chats_->settings().takes_prompts ? chats_->template_text() : std::string();
  }

  /** A document in windows of max_length tokens, the end-of-text token at its end; or a prompt with
   * its completion, and the number of the prompt's tokens as the label; or a chat, and where each
   * of its answers begins and ends. The completion goes on with
   * the prompt's text: a tokenizer that puts a blank before a text puts none before it. */
  void encode(const Example& example,
              const Tokenizer& tokenizer,
              int64_t max_length,
              std::vector<TokenizedExample>& out) const override {
    const size_t n_before = out.size();
    encode_words(example, tokenizer, max_length - virtual_tokens_.n, out);
    if (virtual_tokens_.n == 0) return;
    for (TokenizedExample& sample : std::span(out).subspan(n_before)) {
      virtual_tokens_.prepend(sample);
      if (sample.labels.empty()) sample.labels = {0};  // all of a document is learnt
      for (int32_t& place : sample.labels)
        place += static_cast<int32_t>(virtual_tokens_.n);
    }
  }

  void encode_words(const Example& example,
                    const Tokenizer& tokenizer,
                    int64_t max_length,
                    std::vector<TokenizedExample>& out) const {
    if (is_chat(example)) {
      encode_chat(example, tokenizer, max_length, out);
      return;
    }
    thread_local Encoding encoding;
    std::vector<int32_t>& ids = encoding.ids;
    const bool ends = ends_text(example.part);
    if (example.part == TextPart::whole) {
      tokenizer.encode(example.text, Tokenizer::kNoLimit, encoding);
    } else {
      ids.clear();
      tokenizer.append_part(example.text, begins_text(example.part), ends, example.continues, ids);
    }
    const int32_t eos = tokenizer.special_ids().eos;
    if (ends && !ids.empty() && ids.back() == eos) ids.pop_back();
    size_t n_prompt = ids.size();
    const auto length = static_cast<size_t>(max_length);
    const bool is_too_long = example.text_pair && n_prompt >= length;
    if (is_too_long && long_prompts_ == LongPrompts::leave_out) return;
    if (is_too_long && long_prompts_ == LongPrompts::refuse)
      refuse_prompt(example, n_prompt, max_length);
    if (example.text_pair)
      tokenizer.append_ids(*example.text_pair, ids, /*continues=*/!example.text.empty());
    if (ends && eos >= 0) ids.push_back(eos);
    const size_t n_whole = ids.size();
    if (is_too_long) n_prompt = cut_prompt(ids, n_prompt, length);
    if (example.part != TextPart::whole) {
      out.push_back({.ids = ids, .part = example.part});
    } else if (example.text_pair) {
      const bool is_cut = n_whole > length;
      ids.resize(std::min(ids.size(), length));
      out.push_back({.ids = ids, .labels = {static_cast<int32_t>(n_prompt)}, .truncated = is_cut});
    } else {
      WindowCutter windows(length);
      const auto take = [&](const std::vector<int32_t>& window) { out.push_back({.ids = window}); };
      windows.add(ids, take);
      windows.finish(take);
    }
  }

  void label(MicroBatch& batch,
             const TokenizedDataset& from,
             const Tokenizer& /*tokenizer*/,
             const MaskKey& /*key*/) const override {
    label_next_tokens(batch);
    for (size_t s = 0; s < batch.samples.size(); ++s) {
      const auto labels = from.labels(batch.samples[s]);
      if (labels.empty()) continue;
      if (labels.size() > 1) {
        keep_answers(batch, s, labels);
        continue;
      }
      // The last token of a prompt has the first of the completion to guess.
      const auto begin = static_cast<size_t>(batch.cu_seqlens[s]);
      const auto end = begin + static_cast<size_t>(std::max(labels.front() - 1, 0));
      for (size_t i = begin; i < end; ++i) {
        batch.n_label_items -= batch.labels[i] != kNoLabel;
        batch.labels[i] = kNoLabel;
      }
    }
  }

  /** A token's label is the next one. */
  std::vector<AskedToken> asked_tokens(const MicroBatch& batch,
                                       size_t s,
                                       const Tokenizer& /*tokenizer*/) const override {
    std::vector<AskedToken> asked;
    const std::span<const int32_t> labels = batch.labels_of(s);
    for (size_t i = 0; i + 1 < labels.size(); ++i)
      if (labels[i] != kNoLabel) asked.push_back({.token = i + 1, .target = {}});
    return asked;
  }
  bool is_unasked(const TokenizedDataset& data, int64_t sequence) const override {
    return learnt(data, sequence).empty();
  }
  bool learns_text() const override { return true; }
  std::vector<text::Span> learnt(const TokenizedDataset& data, int64_t sequence) const override {
    const auto labels = data.labels(sequence);
    std::vector<text::Span> spans;
    for (size_t i = 0; i + 1 < labels.size(); i += 2)
      spans.push_back({static_cast<uint32_t>(labels[i]), static_cast<uint32_t>(labels[i + 1])});
    if (labels.size() > 1) return spans;
    const auto n_prompt = static_cast<uint32_t>(labels.empty() ? 1 : std::max(labels.front(), 1));
    const auto n = static_cast<uint32_t>(data.n_ids(sequence));
    if (n_prompt < n) spans.push_back({n_prompt, n});
    return spans;
  }
  FieldNames field_names(const Example& example) const override {
    if (is_chat(example)) return {.text = "chat"};
    if (!example.text_pair) return {};
    return {.text = "prompt", .text_pair = "completion"};
  }
  std::vector<TokenPlaces> places(const Example& example,
                                  const Tokenizer& tokenizer,
                                  int64_t max_length) const override {
    if (is_chat(example)) return {};  // the template's text is not the data's
    Encoding encoding;
    tokenizer.encode(example.text, Tokenizer::kNoLimit, encoding, Offsets::keep);
    TokenPlaces whole = places_of(encoding);
    const int64_t n_virtual = virtual_tokens_.n;
    const int32_t eos = tokenizer.special_ids().eos;
    if (!whole.empty() && whole.back().id == eos) whole.pop_back();
    if (example.text_pair) {
      const TokenPlaces pair = places_of_completion(*example.text_pair, tokenizer);
      whole.insert(whole.end(), pair.begin(), pair.end());
    }
    if (eos >= 0) whole.push_back({.id = eos, .bytes = {}});
    std::vector<TokenPlaces> windows = in_windows(whole, max_length - n_virtual);
    for (TokenPlaces& window : windows)
      for (int64_t i = n_virtual; i-- > 0;)
        window.insert(window.begin(),
                      {.id = virtual_tokens_.first + static_cast<int32_t>(i), .bytes = {}});
    return windows;
  }

  void write(HfConfig& /*config*/) const override {}

  std::string next_commands(const std::string& model) const override {
    const bool talks = chats_ && !chats_->template_text().empty();
    return fmt::format(
        "next: {1}\n      ferry eval --model {0} "
        "--dataset TEXTS\n      ferry export --model {0} --output DIR\n",
        model,
        talks ? fmt::format("ferry chat {}", model)
              : fmt::format("ferry generate --model {} \"The first words\"", model));
  }

 private:
  /** A chat of the data, or a prompt with its completion where the settings take them for one. */
  bool is_chat(const Example& example) const {
    return example.is_chat || (example.text_pair && chats_ && chats_->settings().takes_prompts);
  }

  void encode_chat(const Example& example,
                   const Tokenizer& tokenizer,
                   int64_t max_length,
                   std::vector<TokenizedExample>& out) const {
    FERRY_CHECK(chats_, "a chat, and nothing that encodes it");
    chat::Conversation conversation;
    if (example.is_chat) {
      conversation = chat::unpacked(example.text);
    } else {
      conversation.turns.push_back(
          {.role = std::string(chat::kUser), .text = example.text, .thinking = {}});
      conversation.turns.push_back(
          {.role = std::string(chat::kAssistant), .text = *example.text_pair, .thinking = {}});
    }
    const std::string place = example.place.empty() ? "a chat" : example.place;
    auto encoded = chats_->encode(conversation, tokenizer, max_length, place);
    while (!encoded && long_prompts_ == LongPrompts::cut && drop_oldest(conversation))
      encoded = chats_->encode(conversation, tokenizer, max_length, place);
    if (!encoded && long_prompts_ == LongPrompts::refuse)
      throw Error(Fault::data, "data.tokenize",
                  fmt::format("{}: the first answer of the chat has no room within {} tokens",
                              place, max_length),
                  "raise max_length, or shorten the chat");
    if (!encoded) return;
    TokenizedExample sample = {.ids = encoded->ids, .truncated = encoded->was_cut};
    for (const text::Span& answer : encoded->answers) {
      sample.labels.push_back(static_cast<int32_t>(answer.begin));
      sample.labels.push_back(static_cast<int32_t>(answer.end));
    }
    out.push_back(std::move(sample));
  }

  /** Takes the first question with its answers out of a chat. False where nothing to learn would be
   * left. */
  static bool drop_oldest(chat::Conversation& conversation) {
    auto& turns = conversation.turns;
    const auto asks = [](const chat::Turn& turn) { return turn.role == chat::kUser; };
    const auto first = std::ranges::find_if(turns, [](const chat::Turn& turn) {
      return turn.role != chat::kSystem && turn.role != chat::kDeveloper;
    });
    if (first == turns.end()) return false;
    const auto next = std::find_if(first + 1, turns.end(), asks);
    if (std::none_of(next, turns.end(),
                     [](const chat::Turn& turn) { return turn.is_answer() && turn.is_trained; }))
      return false;
    turns.erase(first, next);
    return true;
  }

  /** Takes the labels from all tokens but those before an answer's: `answers` has where each one
   * begins and ends. */
  static void keep_answers(MicroBatch& batch, size_t s, std::span<const int32_t> answers) {
    const auto begin = static_cast<size_t>(batch.cu_seqlens[s]),
               end = static_cast<size_t>(batch.cu_seqlens[s + 1]);
    size_t at = 0;  // of the answer that the next token may belong to
    for (size_t i = begin; i < end; ++i) {
      const auto next = static_cast<int32_t>(i - begin) + 1;
      while (at + 1 < answers.size() && answers[at + 1] <= next)
        at += 2;
      if (at + 1 < answers.size() && answers[at] <= next) continue;
      batch.n_label_items -= batch.labels[i] != kNoLabel;
      batch.labels[i] = kNoLabel;
    }
  }

  /** A completion goes on with its prompt, so its first tokens may be others than those of the text
   * by itself, which are the ones with places. */
  static TokenPlaces places_of_completion(const std::string& text, const Tokenizer& tokenizer) {
    Encoding encoding;
    tokenizer.encode(text, Tokenizer::kNoLimit, encoding, Offsets::keep);
    TokenPlaces alone = places_of(encoding, 1), places;
    std::erase_if(alone, [](const TokenPlace& token) { return token.text < 0; });
    std::vector<int32_t> ids;
    tokenizer.append_ids(text, ids, /*continues=*/true);
    for (const int32_t id : ids)
      places.push_back({.id = id, .text = 1, .bytes = {}});
    size_t n_same = 0;
    for (; n_same < std::min(ids.size(), alone.size()); ++n_same) {
      TokenPlace& to = places[places.size() - 1 - n_same];
      const TokenPlace& from = alone[alone.size() - 1 - n_same];
      if (to.id != from.id) break;
      to = from;
    }
    // Together the others are the text before the first that is the same.
    if (n_same < places.size())
      places[places.size() - 1 - n_same].bytes = {
          0, n_same > 0 ? places[places.size() - n_same].bytes.begin
                        : static_cast<uint32_t>(text.size())};
    return places;
  }

  /** Cuts the end of a prompt that fills `length` tokens, so that it and its completion share them
   * as LLaMA-Factory has it. Gives the number of the prompt's tokens that stay. */
  static size_t cut_prompt(std::vector<int32_t>& ids, size_t n_prompt, size_t length) {
    const size_t n_completion = ids.size() - n_prompt;
    const size_t most = n_completion * 2 < length
                            ? n_completion
                            : length * n_completion / (n_prompt + n_completion);
    const size_t n_kept = length - std::min(std::max<size_t>(most, 1), n_completion);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(n_kept),
              ids.begin() + static_cast<std::ptrdiff_t>(n_prompt));
    return n_kept;
  }

  [[noreturn]] static void refuse_prompt(const Example& example,
                                         size_t n_tokens,
                                         int64_t max_length) {
    constexpr size_t kShown = 60;
    std::string start = example.text.substr(0, kShown);
    start.resize(std::min(first_invalid_utf8(start), start.size()));
    throw Error(Fault::data, "data.tokenize",
                fmt::format("{}the prompt '{}{}' has {} tokens, max_length is {}",
                            example.place.empty() ? "" : example.place + ": ", escaped(start),
                            start.size() < example.text.size() ? "..." : "", n_tokens, max_length),
                "a completion has no room behind it: raise max_length, or shorten the prompt");
  }

  LongPrompts long_prompts_;
  VirtualTokens virtual_tokens_;
  std::shared_ptr<const chat::ChatEncoder> chats_;
};

template <typename T>
TaskKind kind(std::string_view name, HeadKind head, RowForm rows) {
  return {
      .name = name,
      .head = head,
      .rows = {.form = rows, .labels = LabelUse::ignored},
      .make = [](LabelScheme scheme, const TaskSettings& settings) -> std::shared_ptr<const Task> {
        return std::make_shared<T>(std::move(scheme), settings);
      },
      .of_model = [](const HfConfig&, const TaskSettings& settings) -> std::shared_ptr<const Task> {
        return std::make_shared<T>(LabelScheme{}, settings);
      }};
}

}  // namespace

TaskKind masked_lm_kind() {
  return kind<MaskedLm>("mlm", HeadKind::masked_lm, RowForm::texts);
}

TaskKind causal_lm_kind() {
  return kind<CausalLm>("causal-lm", HeadKind::causal_lm, RowForm::documents);
}

}  // namespace ferry
