// Questions on a text that holds their answers: JSONL with a question a row, as the hub has SQuAD,
// and SQuAD's own file, where paragraphs hold their questions.

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/json_reader.h"
#include "src/base/utf8.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/formats/table_file.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** QuestionKeys of a question. */
struct QuestionKeys {
  std::string question = "question", context = "context", answers = "answers";
};

struct Questions {
  std::string file;  // that is being read
  bool wants_answers = false;
  Dataset dataset;
  int64_t n_unanswered = 0;
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
               "a question without an answer has an empty list");
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

void add_question(Questions& all,
                  const ordered_json& question,
                  const ordered_json& paragraph,
                  const QuestionKeys& keys,
                  const std::string& place) {
  Example example;
  example.text = text_at(question, keys.question, place);
  example.text_pair = text_at(paragraph, keys.context, place);
  if (const auto id = question.find("id"); id != question.end()) example.id = text_or_integer(*id);
  if (all.wants_answers) {
    const auto impossible = question.find("is_impossible");
    if (impossible == question.end() || *impossible != true)
      example.label.answers = answers_of(question, keys.answers, *example.text_pair, place);
    all.n_unanswered += example.label.answers.empty();
  }
  all.dataset.examples.push_back(std::move(example));
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

void read_squad(Questions& all, const ordered_json& whole) {
  size_t a = 0;
  for (const ordered_json& article : list_at(whole, "data", all.file, "the file")) {
    const std::string at_article = fmt::format("data[{}]", a++);
    // Rows with their own contexts, as load_dataset(..., field="data") reads them.
    if (article.is_object() && article.contains("context")) {
      add_question(all, article, article, {}, fmt::format("{}: {}", all.file, at_article));
      continue;
    }
    size_t p = 0;
    for (const ordered_json& paragraph : list_at(article, "paragraphs", all.file, at_article)) {
      const std::string at_paragraph = fmt::format("{}.paragraphs[{}]", at_article, p++);
      size_t q = 0;
      for (const ordered_json& question : list_at(paragraph, "qas", all.file, at_paragraph)) {
        const std::string place = fmt::format("{}: {}.qas[{}]", all.file, at_paragraph, q++);
        if (!question.is_object()) refuse_row(place, "is not a JSON object");
        add_question(all, question, paragraph, {}, place);
      }
    }
  }
}

void read_rows(Questions& all, std::string_view text, const DatasetOptions& options) {
  if (options.label_columns.size() > 1)
    throw Error(Fault::usage, "data.columns",
                fmt::format("label_column names {} columns", options.label_columns.size()),
                "the answers are in one column");
  std::optional<QuestionKeys> keys;
  JsonRows rows(text, all.file);
  for (JsonRow row; rows.next(row);) {
    const ordered_json object = object_of(row, all.file);
    if (!keys) {
      const auto key = [&](std::string_view option, const std::string& asked, const char* usual) {
        const std::string found = choose_key(object, all.file, option, asked, {usual});
        return found.empty() ? std::string(usual) : found;
      };
      keys = {.question = key("text_column", options.text_column, "question"),
              .context = key("text_pair_column", options.text_pair_column, "context"),
              .answers = key("label_column",
                             options.label_columns.empty() ? "" : options.label_columns.front(),
                             "answers")};
    }
    add_question(all, object, object, *keys, fmt::format("{}:{}", all.file, row.line));
  }
}

/** Adds the questions of a file. */
void read_file(Questions& all, const DatasetOptions& options) {
  all.file = options.path.string();
  const TextFile file = load_objects(options);
  ordered_json whole;
  const bool is_whole = options.format == DatasetFormat::jsonl &&
                        trim(file.text).starts_with('{') && !parse_json(file.text, whole);
  if (is_whole && whole.contains("data") && whole["data"].is_array())
    read_squad(all, whole);
  else
    read_rows(all, file.text, options);
}

}  // namespace

Dataset read_questions(const DatasetOptions& options,
                       const std::vector<std::filesystem::path>& files,
                       DatasetFormat format,
                       const LabelScheme* known) {
  Questions all;
  all.wants_answers = options.labels != LabelUse::ignored;
  for (const std::filesystem::path& path : files) {
    const size_t n_before = all.dataset.examples.size();
    read_file(all, options_of_file(options, path, format));
    if (all.dataset.examples.size() == n_before)
      throw Error(Fault::data, "data.read", fmt::format("'{}' has no examples", all.file),
                  "is it the right file?");
  }
  Dataset& dataset = all.dataset;
  const size_t n = dataset.examples.size();
  std::string note = fmt::format("{}: {} question{}", options.path.string(), n, n == 1 ? "" : "s");
  if (all.wants_answers) {
    if (known) dataset.scheme = *known;
    dataset.scheme.problem = ProblemType::answers;
    dataset.scheme.has_unanswered |= all.n_unanswered > 0;
    note += all.n_unanswered > 0 ? fmt::format(", {} without an answer", all.n_unanswered) : "";
  }
  dataset.scheme.has_pairs = true;
  dataset.notes.push_back(escaped(note));
  return std::move(all.dataset);
}

}  // namespace ferry
