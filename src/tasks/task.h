#pragma once
// A task is what a model is trained for: which head it gets, how texts become samples, what labels
// a micro-batch has, how its outputs are scored and said in words, and what config.json keeps of
// it. One file a task; tasks.cpp lists them, and nothing else knows one from another. `ferry plan`
// asks tasks, too: no torch.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/core/loss_kind.h"
#include "models/core/preference.h"
#include "src/base/json/json_value.h"
#include "src/chat/encoder.h"
#include "src/data/batch.h"
#include "src/data/read/reader.h"
#include "src/data/tokenized.h"
#include "src/files/hf/hf_config.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** A model's answer for an example. */
struct Answer {
  int64_t example = 0;  ///< place in the data
  std::string words;    ///< "business (0.97)"
  std::string truth;    ///< the same of the data's own label; empty without one
  JsonValue predicted;  ///< fields of an object: what `ferry predict --json` prints
  JsonValue compared;   ///< fields of an object: what predictions.jsonl has, the label too
};
using TakeAnswer = std::function<void(Answer)>;
using Metrics = std::vector<std::pair<std::string, double>>;

/** Scores a pass over the evaluation data, batch by batch, so that its memory does not grow with
 * the logits. */
class Scorer {
 public:
  virtual ~Scorer() = default;
  /** `logits` as Session::evaluate() gives them. Answers that are complete go to `take`, in the
   * order of the examples; an empty one wants none. */
  virtual void add(const MicroBatch& batch,
                   std::span<const float> logits,
                   const TakeAnswer& take) = 0;
  /** After the last batch: answers that are left. */
  virtual void finish(const TakeAnswer& /*take*/) {}
  /** In the order to print; no undefined ones. Only of data with labels. */
  virtual Metrics metrics(double loss) const = 0;
  /** (n_labels, n_labels) row = true; empty where the task has none. */
  virtual std::vector<int64_t> confusion() const { return {}; }
};

/** A token of a sample, and its place in the example's texts as the tokenizer tells it. */
struct TokenPlace {
  int32_t id = 0;
  int text = -1;    ///< 0 or 1; -1: a special token, or nobody knows
  TextRange bytes;  ///< in that text; of a text that came in words those of the whole word
};
/** The places of a sample's tokens. */
using TokenPlaces = std::vector<TokenPlace>;

/** A token of a sample that the loss asks for. */
struct AskedToken {
  size_t token = 0;    ///< its place in the sample, from 0
  std::string target;  ///< the answer that is wanted here, where it is not the token itself
};

/** The names of an example's fields, for people. */
struct FieldNames {
  std::string_view text = "text", text_pair = "second text", label = "label";
};

class Task {
 public:
  virtual ~Task() = default;

  /** As the option task names it. */
  virtual std::string_view name() const = 0;
  /** The loss, and by it the head. */
  virtual LossKind loss() const = 0;
  HeadKind head() const { return head_of(loss()); }
  /** The outputs of the head for a text or token; 0 for one over the vocabulary. */
  virtual int64_t n_labels() const = 0;
  /** The labels of the texts, in the order of the head's outputs. */
  const LabelScheme& scheme() const { return scheme_; }

  /** Throws Error(data) where the tokenizer lacks what the task needs. */
  virtual void check(const Tokenizer& /*tokenizer*/) const {}
  /** The samples of an example, of at most max_length tokens each, with labels where the example
   * has some. None of a prompt that is too long and to be left out. Called from several threads at
   * once.
   */
  virtual void encode(const Example& example,
                      const Tokenizer& tokenizer,
                      int64_t max_length,
                      std::vector<TokenizedExample>& out) const = 0;
  /** Labels of a micro-batch, cut from `from`: sets labels, values, label_rows, n_label_items and
   * n_end_items, and may change its ids. Samples without labels get some, since the head wants
   * them. The key says where in the run it stands. */
  virtual void label(MicroBatch& batch,
                     const TokenizedDataset& from,
                     const Tokenizer& tokenizer,
                     const MaskKey& key) const = 0;

  /** The ids of samples are below it. */
  virtual int64_t n_ids(const Tokenizer& tokenizer) const { return tokenizer.vocab_size(); }
  /** The part of the settings that decides samples and that no option names: tokens that are kept
   * in a file are found again where it is the same. */
  virtual int64_t setting_of_samples() const { return 0; }
  /** Sentences for the user about the examples that were encoded since the last call. */
  virtual std::vector<std::string> take_notes() const { return {}; }
  /** The chat template that the settings name beside the model's own, by which chats became texts;
   * empty for none. */
  virtual std::string chat_template() const { return {}; }
  /** Its samples may be others on another day, since a chat template writes the date. */
  virtual bool depends_on_day() const { return false; }
  /** A document may be encoded part by part (src/tasks/document_parts.h). */
  virtual bool takes_parts() const { return false; }
  /** Several sequences may be one sample: nothing but their tokens is asked for. */
  virtual bool may_be_packed() const { return false; }
  /** Each example has two sequences, which are a sample: a chosen and a rejected answer. */
  virtual bool compares_answers() const { return false; }
  /** Its loss compares with the log-probabilities of the first weights. */
  virtual bool has_reference() const { return false; }
  /** Texts come in words, and are encoded word by word. */
  virtual bool reads_words() const { return false; }
  /** Documents that fill max_length go on in another sample, which shares tokens with the one
   * before. */
  virtual bool shares_tokens() const { return false; }
  /** The tokens that the loss asks for are drawn in each step, and others stand in their places. */
  virtual bool draws_asked_tokens() const { return false; }
  /** The head works on the tokens that MicroBatch::label_rows names alone. */
  virtual bool names_rows() const { return draws_asked_tokens(); }
  /** Class weights count: each text has one label. */
  virtual bool has_one_class() const { return false; }
  /** A loss that is so many times the first one is no chance of one batch. */
  virtual double worrying_rise() const { return 2; }
  /** The loss of a model that knows nothing but the number of its labels; 0: no telling. */
  virtual double guessing_loss() const { return 0; }

  /** The places of the tokens of an example's samples, in encode()'s order. */
  virtual std::vector<TokenPlaces> places(const Example& example,
                                          const Tokenizer& tokenizer,
                                          int64_t max_length) const;
  /** The tokens of sequence `s` of a labelled micro-batch that the loss asks for. None where whole
   * texts are labelled. */
  virtual std::vector<AskedToken> asked_tokens(const MicroBatch& /*batch*/,
                                               size_t /*s*/,
                                               const Tokenizer& /*tokenizer*/) const {
    return {};
  }
  /** The loss asks for nothing of the sequence. Not for tasks that draw what they ask for. */
  virtual bool is_unasked(const TokenizedDataset& data, int64_t /*sequence*/) const {
    return !data.has_labels();
  }
  /** Texts are learnt: the tokens of learnt() are what the model shall say. */
  virtual bool learns_text() const { return false; }
  /** The tokens of a sequence that are learnt, ascending, none empty, where texts are. */
  virtual std::vector<text::Span> learnt(const TokenizedDataset& /*data*/,
                                         int64_t /*sequence*/) const {
    return {};
  }
  /** The example as one of its sequences has it: with two answers, that one. */
  virtual Example seen_in(Example example, int64_t /*sequence*/) const { return example; }
  /** The name of one of an example's sequences; empty: they are parts of a text. */
  virtual std::string_view name_of_sequence(int64_t /*sequence*/) const { return {}; }
  virtual FieldNames field_names(const Example& /*example*/) const { return {}; }
  /** The answer to the whole of a labelled example, "business" or "3.5"; empty: it has none. */
  virtual std::string answer(const Example& /*example*/) const { return {}; }
  /** The same of a sequence of labelled data, where whole texts are labelled. */
  virtual std::string answer(const TokenizedDataset& /*data*/, int64_t /*sequence*/) const {
    return {};
  }
  /** All labels of a labelled example in a line. */
  virtual std::string labels_in_words(const Example& example) const { return answer(example); }

  /** `ferry predict` has something to say. */
  virtual bool answers_texts() const { return true; }
  /** Scores need the model's outputs, not only the loss. */
  virtual bool wants_logits() const { return true; }
  /** `data`, which keeps its examples if the task answers texts, and `tokenizer` outlive it. */
  virtual std::unique_ptr<Scorer> scorer(const TokenizedDataset& data,
                                         const Tokenizer& tokenizer) const = 0;
  /** The names of an evaluation's metrics, "loss" first. */
  virtual std::vector<std::string> metric_names() const = 0;

  /** Writes the task into config.json, where TaskKind::of_model() finds it. */
  virtual void write(HfConfig& config) const = 0;
  /** The commands that people use next on a finished model; `model` as a shell takes it. */
  virtual std::string next_commands(const std::string& model) const = 0;

 protected:
  explicit Task(LabelScheme scheme) : scheme_(std::move(scheme)) {}

 private:
  LabelScheme scheme_;
};

/** What becomes of a prompt that leaves no room for its completion, and of a question that leaves
 * none for its context. */
enum class LongPrompts : uint8_t {
  leave_out,
  cut,     ///< the prompt and its completion share the length; questions are left out
  refuse,  ///< where each text is to have an answer
};

struct PromptSettings;

/** Tokens without a text that stand before each one (soft prompts). */
struct VirtualTokens {
  int32_t first = 0;  ///< the id of the first; the others follow
  int64_t n = 0;

  /** The ids of a task's samples are below it; of others below `of_words`. */
  int64_t end_of_ids(int64_t of_words) const { return n > 0 ? first + n : of_words; }
  void prepend(std::vector<int32_t>& ids) const;
  /** Puts them before a sample whose labels count no tokens. */
  void prepend(TokenizedExample& sample) const;
};

/** Settings of a run that tasks go by. */
struct TaskSettings {
  /** Makes tokens of chats; null where nothing is read. */
  std::shared_ptr<const chat::ChatEncoder> chats;
  int64_t doc_stride = 128;        ///< tokens that two windows of a context share
  int64_t max_answer_length = 30;  ///< tokens
  LongPrompts long_prompts = LongPrompts::refuse;
  PreferenceRule preference;  ///< of the task preference
  VirtualTokens virtual_tokens;
  std::shared_ptr<const PromptSettings> prompt;  ///< null: the settings name no template
  /** A classifier passes over this token at a text's end, as transformers does where a decoder
   * reads the text's last one. */
  std::optional<int32_t> padding;
};

/** In config.json: whether a classifier was trained on pairs of texts. Nobody else's key. */
inline constexpr std::string_view kPairsKey = "ferry_text_pairs";

struct TaskKind {
  std::string_view name;  ///< as the option task names it
  HeadKind head;
  RowNeed rows;
  /** True of models that go on with a text. */
  bool generates() const { return head == HeadKind::causal_lm; }
  /** Of training data with these labels. */
  std::shared_ptr<const Task> (*make)(LabelScheme scheme, const TaskSettings& settings);
  /** Of a trained model; throws Error(data) where its config.json lacks what the task needs. */
  std::shared_ptr<const Task> (*of_model)(const HfConfig& config, const TaskSettings& settings);
};

std::span<const TaskKind> task_kinds();
/** By the name of the option task, which is one of them. */
const TaskKind& task_kind(std::string_view name);
/** The kind of a trained model, by its architecture; a classifier where that tells nothing. */
const TaskKind& kind_of_model(const HfConfig& config);

/** Takes back what config.json says of a classifier alone, before another task is written. */
void drop_classifier_keys(HfConfig& config);

/** The tokens of an encoding that keeps its offsets, whose first text is `first_text`. */
TokenPlaces places_of(const Encoding& encoding, int first_text = 0);
/** Places of all tokens of an example, cut to samples of max_length tokens. */
std::vector<TokenPlaces> in_windows(const TokenPlaces& whole, int64_t max_length);

/** Ids and types of an example's one or two texts, with the special tokens of its model. */
TokenizedExample encode_texts(const Example& example,
                              const Tokenizer& tokenizer,
                              int64_t max_length);

}  // namespace ferry
