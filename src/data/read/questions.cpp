// Questions on a text that holds their answers: JSONL with a question a row, as the hub has SQuAD,
// and SQuAD's own file, where paragraphs hold their questions.

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/base/utf8.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/formats/text_file.h"
#include "src/data/read/object_rows.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** QuestionKeys of a question. */
struct QuestionKeys {
  std::string question = "question", context = "context", answers = "answers";
};

const std::string& text_at(const ordered_json& object,
                           const std::string& key,
                           const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null())
    refuse_row(place, fmt::format("the field '{}' is missing", key));
  if (!found->is_string()) refuse_row(place, fmt::format("the field '{}' is not a text", key));
  const auto& text = found->get_ref<const std::string&>();
  if (trim(text).empty()) refuse_row(place, fmt::format("the field '{}' is empty", key));
  return text;
}

TextRange place_of_answer(const ordered_json& text,
                          const ordered_json& start,
                          std::string_view context,
                          const std::string& place) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  const bool is_place =
      start.is_number_integer() && start.get<int64_t>() >= 0 && start.get<int64_t>() < kMost;
  if (!text.is_string() || !is_place)
    refuse_row(place, "an answer is no text with its place",
               R"(expected {"text": ["an answer"], "answer_start": [0]})");
  const auto& words = text.get_ref<const std::string&>();
  const auto at = byte_of_character(context, start.get<size_t>());
  if (!at || context.substr(*at, words.size()) != words)
    refuse_row(place,
               fmt::format("the answer '{}' does not stand at character {} of the context", words,
                           start.get<int64_t>()),
               context.find(words) == context.npos
                   ? "the context does not hold it"
                   : "answer_start counts the characters before it, not bytes");
  return {static_cast<uint32_t>(*at), static_cast<uint32_t>(*at + words.size())};
}

/** Answers as two lists, {"text": [...], "answer_start": [...]}, or as a list of objects. An empty
 * text answers nothing. */
std::vector<TextRange> answers_of(const ordered_json& question,
                                  const std::string& key,
                                  std::string_view context,
                                  const std::string& place) {
  const auto found = question.find(key);
  if (found == question.end() || found->is_null())
    refuse_row(place, fmt::format("the field '{}' is missing", key),
               R"(expected "answers": {"text": ["Ann"], "answer_start": [12]}, where answer_start )"
               "counts the characters of the context before the answer; a question without an "
               "answer has two empty lists");
  std::vector<std::pair<ordered_json, ordered_json>> pairs;
  const auto field = [](const ordered_json& object, const char* name) {
    return object.is_object() ? object.value(name, ordered_json()) : ordered_json();
  };
  if (found->is_array()) {
    for (const ordered_json& answer : *found)
      pairs.emplace_back(field(answer, "text"), field(answer, "answer_start"));
  } else {
    const ordered_json texts = field(*found, "text"), starts = field(*found, "answer_start");
    if (!texts.is_array() || !starts.is_array() || texts.size() != starts.size())
      refuse_row(place, fmt::format("the field '{}' has no texts with as many places", key),
                 R"(expected {"text": ["an answer"], "answer_start": [0]})");
    for (size_t i = 0; i < texts.size(); ++i)
      pairs.emplace_back(texts[i], starts[i]);
  }
  std::vector<TextRange> answers;
  for (const auto& [text, start] : pairs)
    if (text != "") answers.push_back(place_of_answer(text, start, context, place));
  return answers;
}

Example question_of(const ordered_json& question,
                    const ordered_json& paragraph,
                    const QuestionKeys& keys,
                    bool wants_answers,
                    const std::string& place) {
  Example example;
  example.place = place;
  example.text = text_at(question, keys.question, place);
  example.text_pair = text_at(paragraph, keys.context, place);
  if (const auto id = question.find("id"); id != question.end()) example.id = text_or_integer(*id);
  if (!wants_answers) return example;
  const auto impossible = question.find("is_impossible");
  if (impossible == question.end() || *impossible != true)
    example.label.answers = answers_of(question, keys.answers, *example.text_pair, place);
  return example;
}

/** A list, as SQuAD's file nests them. */
const ordered_json& list_at(const ordered_json& object,
                            const char* key,
                            const std::string& file,
                            const std::string& place) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_array())
    refuse_row(fmt::format("{}: {}", file, place), fmt::format("has no list '{}'", key),
               "expected SQuAD's form: data, paragraphs, qas");
  return *found;
}

/** The questions of one file. */
class QuestionRows : public RowSource<Example> {
 public:
  explicit QuestionRows(const DatasetOptions& options)
      : options_(options),
        name_(options.path.string()),
        wants_answers_(options.labels != LabelUse::ignored),
        rows_(options) {
    if (options.label_columns.size() > 1)
      throw Error(Fault::usage, "data.columns",
                  fmt::format("label_column names {} columns", options.label_columns.size()),
                  "the answers are in one column");
    read_squad();
  }

  bool next(Example& example) override {
    if (squad_) {
      if (next_of_squad_ == squad_->size()) return false;
      example = std::move((*squad_)[next_of_squad_++]);
      return true;
    }
    JsonRow row;
    if (!rows_.next(row)) return false;
    const ordered_json object = object_of(row, name_);
    if (!keys_) keys_ = choose_keys(object);
    example =
        question_of(object, object, *keys_, wants_answers_, fmt::format("{}:{}", name_, row.line));
    return true;
  }
  double share() const override {
    return squad_ ? static_cast<double>(next_of_squad_) /
                        static_cast<double>(std::max<size_t>(squad_->size(), 1))
                  : rows_.share();
  }

 private:
  QuestionKeys choose_keys(const ordered_json& object) const {
    const auto key = [&](std::string_view option, const std::string& asked, const char* usual) {
      const std::string found = choose_key(object, name_, option, asked, {usual});
      return found.empty() ? std::string(usual) : found;
    };
    return {.question = key("text_column", options_.text_column, "question"),
            .context = key("text_pair_column", options_.text_pair_column, "context"),
            .answers = key("label_column",
                           options_.label_columns.empty() ? "" : options_.label_columns.front(),
                           "answers")};
  }

  /** SQuAD's own file is one object, and held as a whole. */
  void read_squad() {
    const TextFile* file = rows_.text_file();
    if (!file || !trim(file->text()).starts_with('{')) return;
    std::string text(file->text().substr(0, file->text().find('\n')));
    const bool has_more = !trim(file->text().substr(text.size())).empty();
    file->to_utf8(text);
    ordered_json whole;
    // Where there are rows, the first line is an object, and the next one no part of it.
    if (has_more && !parse_json(text, whole)) return;
    text = file->text();
    file->to_utf8(text);
    if (parse_json(text, whole) || !whole.contains("data") || !whole["data"].is_array()) return;
    squad_.emplace();
    size_t a = 0;
    for (const ordered_json& article : list_at(whole, "data", name_, "the file"))
      add_article(article, fmt::format("data[{}]", a++));
  }

  void add_article(const ordered_json& article, const std::string& at_article) {
    // Rows with their own contexts, as load_dataset(..., field="data") reads them.
    if (article.is_object() && article.contains("context")) {
      add(article, article, at_article);
      return;
    }
    size_t p = 0;
    for (const ordered_json& paragraph : list_at(article, "paragraphs", name_, at_article)) {
      const std::string at_paragraph = fmt::format("{}.paragraphs[{}]", at_article, p++);
      size_t q = 0;
      for (const ordered_json& question : list_at(paragraph, "qas", name_, at_paragraph)) {
        const std::string at_question = fmt::format("{}.qas[{}]", at_paragraph, q++);
        if (!question.is_object())
          refuse_row(fmt::format("{}: {}", name_, at_question), "is not a JSON object");
        add(question, paragraph, at_question);
      }
    }
  }

  void add(const ordered_json& question, const ordered_json& paragraph, const std::string& at) {
    squad_->push_back(
        question_of(question, paragraph, {}, wants_answers_, fmt::format("{}: {}", name_, at)));
  }

  DatasetOptions options_;
  std::string name_;
  bool wants_answers_;
  ObjectRows rows_;
  std::optional<QuestionKeys> keys_;
  std::optional<std::vector<Example>> squad_;  // the questions of SQuAD's own file
  size_t next_of_squad_ = 0;
};

std::unique_ptr<QuestionRows> open_rows_of(const DatasetOptions& options) {
  return std::make_unique<QuestionRows>(options);
}

using QuestionFiles = RowFiles<QuestionRows>;

class QuestionStream : public ExampleStream {
 public:
  QuestionStream(const DatasetFiles& files, std::vector<std::string> notes)
      : rows_(files, open_rows_of), notes_(std::move(notes)) {}

  bool next(Example& example) override { return rows_.next(example); }
  int64_t n_bytes_read() const override { return rows_.n_bytes_read(); }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  QuestionFiles rows_;
  std::vector<std::string> notes_;
};

class QuestionReader : public DatasetReader {
 public:
  QuestionReader(const DatasetFiles& files, const LabelScheme* known) : DatasetReader(files) {
    QuestionFiles rows(files, open_rows_of);
    int64_t n = 0, n_unanswered = 0;
    for (Example example; rows.next(example); ++n)
      n_unanswered += example.label.answers.empty();
    std::string note =
        fmt::format("{}: {} question{}", files.options.path.string(), n, n == 1 ? "" : "s");
    if (files.options.labels != LabelUse::ignored) {
      if (known) scheme_ = *known;
      scheme_.problem = ProblemType::answers;
      scheme_.has_unanswered |= n_unanswered > 0;
      note += n_unanswered > 0 ? fmt::format(", {} without an answer", n_unanswered) : "";
    }
    scheme_.has_pairs = true;
    notes_ = rows.notes();
    notes_.push_back(note);
    for (std::string& line : notes_)
      line = escaped(line);
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<QuestionStream>(files_, notes_);
  }
};

}  // namespace

std::unique_ptr<DatasetReader> open_questions(const DatasetFiles& files, const LabelScheme* known) {
  return std::make_unique<QuestionReader>(files, known);
}

}  // namespace ferry
