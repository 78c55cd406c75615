#include "src/inputs/data.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "models/family.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/data/read/dataset_files.h"
#include "src/data/read/given_texts.h"
#include "src/data/run_dataset.h"
#include "src/inputs/preference_rule.h"
#include "src/inputs/prompt_settings.h"
#include "src/tasks/document_parts.h"

namespace ferry {
namespace {

DatasetOptions dataset_options(const config::Config& config,
                               const std::string& path,
                               RowNeed rows) {
  return dataset_options([&](std::string_view key) { return config.maybe_text(key); }, path, rows);
}

/** The model knows each of these labels, by its name or by its number. A tagger keeps the tags that
 * the data lacks, and data of the hub has numbers in place of their names. */
bool knows_all(const HfConfig& model, const LabelMap& labels) {
  if (model.id2label.empty() || kind_of_model(model).head != HeadKind::token_classification)
    return false;
  const LabelMap known(model.id2label);
  return std::ranges::all_of(labels.names(),
                             [&](const std::string& name) { return known.find(name).has_value(); });
}

/** A model that is trained on goes on with its own order of the same labels. */
std::optional<LabelScheme> scheme_of_same_labels(const LabelScheme& found, const HfConfig& model) {
  if (found.problem == ProblemType::regression || model.id2label == found.labels.names())
    return std::nullopt;
  const bool is_same = std::ranges::is_permutation(model.id2label, found.labels.names()) ||
                       (found.problem == ProblemType::tags && knows_all(model, found.labels));
  if (!is_same) return std::nullopt;
  return LabelScheme{.problem = found.problem, .labels = LabelMap(model.id2label)};
}

/** The token that a decoder's classifier takes for padding: the configuration's, or else one that
 * the tokenizer has. transformers takes several texts at once only where there is one. */
std::optional<int32_t> padding_of(const HfConfig& model, const Tokenizer* tokenizer) {
  if (!family_of(model.fields()).is_decoder) return std::nullopt;
  const auto given = model.fields().find("pad_token_id");
  const auto id = given ? static_cast<int32_t>(given->integer(-1, INT32_MAX)) : -1;
  if (id >= 0) return id;
  if (!tokenizer) return std::nullopt;
  const SpecialIds& ids = tokenizer->special_ids();
  const int64_t n_rows = model.fields().integer("vocab_size", 0, INT32_MAX, INT32_MAX);
  for (const int32_t other : {ids.pad, ids.eos})
    if (other >= 0 && other < n_rows) return other;
  return std::nullopt;
}

/** The first examples of another stream. */
class FirstExamples : public ExampleStream {
 public:
  FirstExamples(std::unique_ptr<ExampleStream> from, int64_t n_most)
      : from_(std::move(from)), n_most_(n_most) {}

  bool next(Example& example) override {
    if (is_over_ || !from_->next(example)) return false;
    n_ += begins_text(example.part);
    is_over_ = n_ == n_most_ && ends_text(example.part);
    return true;
  }
  int64_t n_bytes_read() const override { return from_->n_bytes_read(); }
  std::vector<std::string> notes() const override { return from_->notes(); }

 private:
  std::unique_ptr<ExampleStream> from_;
  int64_t n_most_, n_ = 0;
  bool is_over_ = false;
};

LongPrompts long_prompts_of(const config::Config& config) {
  return config.text("long_prompts") == "cut" ? LongPrompts::cut : LongPrompts::leave_out;
}

/** `padding`: of the tokenizer that tells what the configuration does not. */
TaskSettings task_settings(const config::Config& config,
                           const HfConfig& model,
                           const Tokenizer* tokenizer,
                           const Tokenizer* padding) {
  return {.chats = nullptr,
          .doc_stride = config.integer("doc_stride"),
          .max_answer_length = config.integer("max_answer_length"),
          .long_prompts = long_prompts_of(config),
          .preference = preference_rule_of(config),
          .virtual_tokens = virtual_tokens_of(config, model),
          .prompt = prompt_settings_of(config, model, tokenizer),
          .padding = padding_of(model, padding)};
}

/** Noon of a day, "2026-01-31"; of today where none is given. */
std::time_t moment_of(const std::optional<std::string>& day) {
  std::tm time = {};
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &time);
  time.tm_min = time.tm_sec = 0;
  const char* end = day ? ::strptime(day->c_str(), "%Y-%m-%d", &time) : "";
  if (!end || *end != '\0')
    throw Error(Fault::usage, "config.chat_date",
                fmt::format("chat_date is '{}'", day.value_or("")),
                "expected a day as 2026-01-31, or auto");
  time.tm_hour = 12;
  time.tm_isdst = -1;
  return std::mktime(&time);
}

chat::TrainOn train_on_of(const config::Config& config) {
  const std::string& turns = config.text("train_on_turns");
  return turns == "last"  ? chat::TrainOn::last
         : turns == "all" ? chat::TrainOn::all
                          : chat::TrainOn::each;
}

chat::Json template_variables_of(const config::Config& config) {
  const std::string& text = config.text("chat_template_kwargs");
  chat::Json variables = chat::Json::object();
  if (trim(text).empty()) return variables;
  if (const auto fault = parse_json(text, variables); fault || !variables.is_object())
    throw Error(Fault::usage, "config.chat_template_kwargs",
                fmt::format("chat_template_kwargs is '{}', which is no object of JSON", text),
                R"(expected one such as '{"enable_thinking": false}')");
  return variables;
}

/** Single texts beside a model of pairs, or the reverse, would be answered at random. */
void check_pairs_given(const LabelScheme& scheme, bool are_pairs, const config::Config& config) {
  if (!scheme.has_pairs || *scheme.has_pairs == are_pairs) return;
  throw Error(
      Fault::usage, "data.pairs",
      fmt::format("'{}' was trained on {}", config.text("model_name_or_path"),
                  are_pairs ? "single texts, not on pairs" : "pairs of texts, not on single ones"),
      are_pairs
          ? "leave --pairs out"
          : "give pairs: --pairs \"first text\" \"second text\", or --dataset with two columns");
}

bool reads_chats(const TaskKind& kind) {
  return kind.generates() || kind.rows.form == RowForm::preferences;  // a reward model's data
}

TextSource source_of(std::shared_ptr<const DatasetReader> reader) {
  TextSource source = {.reader = std::move(reader)};
  source.has_labels = source.reader->scheme().problem != ProblemType::unlabelled;
  return source;
}

}  // namespace

std::shared_ptr<const DatasetReader> open_training_data(const config::Config& config,
                                                        RowNeed rows,
                                                        const LabelScheme* known) {
  const std::string& path = config.text("dataset");
  const auto open = [&](const std::string& name, const LabelScheme* scheme) {
    const DatasetOptions options = dataset_options(config, name, rows);
    return scheme ? open_dataset(options, *scheme) : open_dataset(options);
  };
  const std::vector<double> shares = dataset_shares(config.text("dataset_shares"));
  if (shares.empty()) return open(path, known);
  const std::vector<std::string> names = dataset_parts(path);
  if (names.size() != shares.size())
    throw Error(Fault::usage, "config.dataset_shares",
                fmt::format("dataset_shares has {} numbers, and dataset {} names", shares.size(),
                            names.size()),
                "give one for each: --dataset a.jsonl,b.jsonl --dataset-shares 0.7,0.3");
  std::vector<std::unique_ptr<DatasetReader>> parts;
  for (const std::string& name : names) {
    // Prompts and documents may be mixed: a scheme without labels asks for nothing.
    const bool has_scheme =
        !parts.empty() && parts.front()->scheme().problem != ProblemType::unlabelled;
    parts.push_back(open(name, has_scheme ? &parts.front()->scheme() : known));
  }
  return mix_datasets(std::move(parts), shares, shuffle_seed_of(config));
}

const TaskKind& task_kind_of(const config::Config& config) {
  return task_kind(config.text("task"));
}

std::string note_of_missing_end(const config::Config& config, const Tokenizer& tokenizer) {
  if (!task_kind_of(config).generates() || tokenizer.special_ids().eos >= 0) return {};
  return "the tokenizer names no end token: texts are trained without one, and the model will not "
         "learn to stop (name one in tokenizer_config.json: \"eos_token\": \"TOKEN\")";
}

int64_t n_labels_without_data(const HfConfig& model) {
  constexpr int64_t kAssumed = 2;
  return model.id2label.empty() ? kAssumed : static_cast<int64_t>(model.id2label.size());
}

std::unique_ptr<ExampleStream> TextSource::examples() const {
  auto all = reader ? reader->examples() : stream_of(given);
  if (side != Side::whole)
    all = std::make_unique<DocumentSide>(std::move(all), cut, side == Side::behind);
  if (n_most) all = std::make_unique<FirstExamples>(std::move(all), *n_most);
  return all;
}

std::shared_ptr<const chat::ChatEncoder> chat_encoder_of(const config::Config& config,
                                                         const chat::ModelFiles& files,
                                                         const Tokenizer& tokenizer) {
  const auto named = config.maybe_text("chat_template");
  chat::ChatSettings settings = {.takes_prompts = named.has_value(),
                                 .train_on = train_on_of(config),
                                 .template_variables = template_variables_of(config),
                                 .now = moment_of(config.maybe_text("chat_date"))};
  // A checkpoint holds the template that its run began with, whatever became of the file.
  const bool is_checkpoint = !config.text("resume_from_checkpoint").empty() &&
                             files.tokenizer.filename().string().starts_with("checkpoint-");
  if (named && *named != "tokenizer_default" && !is_checkpoint) settings.chat_template = *named;
  return std::make_shared<const chat::ChatEncoder>(settings, files, tokenizer);
}

Texts texts_to_train_on(const config::Config& config,
                        const HfConfig& model,
                        const Tokenizer* tokenizer,
                        const chat::ModelFiles& files) {
  const TaskKind& kind = task_kind_of(config);
  check_prompt_task(config, kind);
  check_virtual_tokens(config, kind);
  Texts texts;
  auto all = open_training_data(config, kind.rows);
  if (auto scheme = scheme_of_same_labels(all->scheme(), model)) {
    scheme->is_unbalanced = all->scheme().is_unbalanced;
    all = open_training_data(config, kind.rows, &*scheme);
  }
  TaskSettings settings = task_settings(config, model, tokenizer, tokenizer);
  if (tokenizer && reads_chats(kind)) settings.chats = chat_encoder_of(config, files, *tokenizer);
  texts.chats = settings.chats;
  texts.task = kind.make(all->scheme(), settings);
  texts.notes = all->notes();
  if (std::string note = tokenizer ? note_of_missing_end(config, *tokenizer) : ""; !note.empty())
    texts.notes.push_back(std::move(note));
  texts.train = source_of(all);
  if (const std::string& path = config.text("eval_dataset"); !path.empty()) {
    texts.eval = source_of(open_dataset(dataset_options(config, path, kind.rows), all->scheme()));
  } else if (const double fraction = config.number("eval_fraction"); fraction > 0) {
    const auto cut = kind.rows.form == RowForm::documents && all->parts().empty()
                         ? find_document_cut(*all, fraction)
                         : std::nullopt;
    if (cut) {
      texts.eval = texts.train;
      texts.train.side = TextSource::Side::before;
      texts.eval.side = TextSource::Side::behind;
      texts.train.cut = texts.eval.cut = *cut;
    } else {
      texts.held_out = fraction;
    }
  }
  const auto n_train = config.maybe_integer("max_train_samples"),
             n_eval = config.maybe_integer("max_eval_samples");
  if (texts.held_out > 0) {
    texts.n_train_most = n_train;
    texts.n_eval_most = n_eval;
  } else {
    texts.train.n_most = n_train;
    texts.eval.n_most = n_eval;
  }
  return texts;
}

std::optional<Example> first_row(const config::Config& config,
                                 const std::string& data,
                                 RowForm form) {
  try {
    const RowNeed rows = {.form = form, .labels = LabelUse::ignored};
    const auto examples = open_dataset(dataset_options(config, data, rows))->examples();
    Example first;
    if (examples->next(first)) return first;
  } catch (const Error&) {  // another form, or what its reader will say
  }
  return std::nullopt;
}

bool holds_pairs(const config::Config& config, const std::string& data) {
  return first_row(config, data, RowForm::preferences).has_value();
}

namespace {

/** The task that measures a model on data. On pairs of answers a classifier with one number is a
 * reward model, and a language model of a run by preference (config.task) is measured as there. */
const TaskKind& kind_that_measures(const config::Config& config, const HfConfig& model) {
  const TaskKind& kind = kind_of_model(model);
  if (asks_by_prompt(config, kind)) return task_kind("prompt-classification");
  const std::string& data = config.text("dataset");
  std::error_code error;
  if (data.empty() || std::filesystem::is_fifo(data, error)) return kind;  // a pipe is read once
  if (kind.head == HeadKind::classification && n_labels_without_data(model) == 1 &&
      holds_pairs(config, data))
    return task_kind("reward");
  const TaskKind& of_run = task_kind_of(config);
  const bool compares =
      of_run.rows.form == RowForm::preferences || of_run.rows.form == RowForm::ratings;
  if (kind.head == HeadKind::causal_lm && of_run.head == kind.head && compares &&
      first_row(config, data, of_run.rows.form))
    return of_run;
  return kind;
}

}  // namespace

Texts texts_to_answer(const config::Config& config,
                      const HfDirectory& model,
                      const Tokenizer& tokenizer,
                      bool wants_labels,
                      const std::vector<std::string>& words) {
  const TaskKind& kind = wants_labels ? kind_that_measures(config, model.config())
                         : asks_by_prompt(config, kind_of_model(model.config()))
                             ? task_kind("prompt-classification")
                             : kind_of_model(model.config());
  TaskSettings settings = task_settings(config, model.config(), &tokenizer, nullptr);
  settings.virtual_tokens = virtual_tokens_of(model);
  if (reads_chats(kind)) settings.chats = chat_encoder_of(config, model, tokenizer);
  if (!wants_labels) settings.long_prompts = LongPrompts::refuse;  // each text has its answer
  Texts texts = {.task = kind.of_model(model.config(), settings)};
  if (!texts.task->answers_texts() && !wants_labels)
    throw Error(
        Fault::data, "model.open",
        fmt::format("'{}' is a language model, which labels no texts", model.path().string()),
        "`ferry eval` measures it, `ferry generate` goes on with texts by it where it is a "
        "decoder; "
        "`ferry train --model` makes a classifier of it");
  const LabelScheme& scheme = texts.task->scheme();
  if (const std::string& path = config.text("dataset"); !path.empty()) {
    RowNeed rows = kind.rows;
    if (!wants_labels) rows.labels = LabelUse::ignored;
    auto options = dataset_options(config, path, rows);
    options.takes_pipe = true;
    options.keeps_empty = !wants_labels;
    texts.eval = source_of(open_dataset(options, scheme));
    texts.notes = texts.eval.reader->notes();
    if (wants_labels) texts.eval.n_most = config.maybe_integer("max_eval_samples");
    if (wants_labels && texts.eval.reader->scheme().is_unbalanced) {
      LabelScheme of_data = scheme;  // it decides which figure comes first
      of_data.is_unbalanced = true;
      texts.task = kind.make(std::move(of_data), settings);
    }
  } else {
    const bool are_pairs = config.flag("pairs");
    check_pairs_given(scheme, are_pairs, config);
    texts.eval.given =
        words.empty() ? read_standard_input(are_pairs) : examples_of_words(words, are_pairs);
  }
  if (!wants_labels) texts.eval.has_labels = false;
  return texts;
}

bool packs_texts(const config::Config& config, const Task& task) {
  if (!config.flag("packing")) return false;
  if (!task.may_be_packed())
    throw Error(Fault::usage, "config.packing",
                fmt::format("texts are packed for language models, and task is {}", task.name()),
                "leave packing out; short texts are laid end to end without padding in any case");
  return true;
}

uint64_t shuffle_seed_of(const config::Config& config) {
  return static_cast<uint64_t>(config.maybe_integer("data_seed").value_or(config.integer("seed")));
}

}  // namespace ferry
