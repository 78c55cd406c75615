// Texts that come in words, with a tag for each: JSONL with two lists a row, and CoNLL files.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/formats/text_file.h"
#include "src/data/read/lines.h"
#include "src/data/read/object_rows.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** A row before its tags mean anything. */
struct TaggedRow {
  Example example;
  std::vector<std::string> tags;  // as many as words; none where the file has none
  std::string place;

  void clear() {
    example = {};
    tags.clear();
  }
};

class TaggedRows : public RowSource<TaggedRow> {
 public:
  bool has_tags() const { return has_tags_; }

 protected:
  bool has_tags_ = false;
};

/** Puts a word behind those before it, with a space between. */
void append_word(Example& example, std::string_view word) {
  if (!example.words.empty()) example.text += ' ';
  const auto begin = static_cast<uint32_t>(example.text.size());
  example.text += word;
  example.words.push_back({begin, static_cast<uint32_t>(example.text.size())});
}

/** WordKeys of the words and of their tags. */
struct WordKeys {
  std::string words, tags;
};

WordKeys choose_word_keys(const ordered_json& object,
                          const DatasetOptions& options,
                          const std::string& file) {
  if (options.label_columns.size() > 1)
    throw Error(Fault::usage, "data.columns",
                fmt::format("label_column names {} columns", options.label_columns.size()),
                "the tags of all words are one list, in one column");
  WordKeys keys;
  keys.words = choose_key(object, file, "text_column", options.text_column,
                          {"tokens", "words", "text", "sentence"});
  if (keys.words.empty())
    throw Error(Fault::data, "data.columns",
                fmt::format("'{}' has the keys {}, and none is plainly the list of words", file,
                            list_of_keys(object)),
                "name it with text_column = NAME");
  if (options.labels == LabelUse::ignored) return keys;
  keys.tags =
      choose_key(object, file, "label_column",
                 options.label_columns.empty() ? "" : options.label_columns.front(),
                 {"ner_tags", "tags", "ner", "labels", "label", "pos_tags", "upos", "chunk_tags"});
  if (keys.tags.empty())
    throw Error(Fault::data, "data.columns",
                fmt::format("'{}' has the keys {}, and none is plainly the list of tags", file,
                            list_of_keys(object)),
                "name it with label_column = NAME");
  return keys;
}

/** The list of a field. A text in its place is split at spaces later, where no tags are wanted. */
const ordered_json& list_of(const ordered_json& object,
                            const std::string& key,
                            bool may_be_text,
                            const std::string& place) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null())
    refuse_row(place, fmt::format("the field '{}' is missing", key));
  if (!found->is_array() && !(may_be_text && found->is_string()))
    refuse_row(place, fmt::format("the field '{}' is not a list", key),
               "expected a list of words, and a list of as many tags");
  return *found;
}

void fill_row(TaggedRow& row, const ordered_json& object, const WordKeys& keys) {
  const std::string& place = row.place;
  const ordered_json& words = list_of(object, keys.words, keys.tags.empty(), place);
  if (words.is_string()) {
    row.example.text = words.get<std::string>();
    return;
  }
  for (const ordered_json& word : words) {
    if (!word.is_string())
      refuse_row(place, fmt::format("'{}' has {}, which is not a text", keys.words, word.dump()));
    append_word(row.example, word.get_ref<const std::string&>());
  }
  if (keys.tags.empty()) return;
  for (const ordered_json& tag : list_of(object, keys.tags, /*may_be_text=*/false, place)) {
    row.tags.push_back(text_or_integer(tag));
    if (row.tags.back().empty())
      refuse_row(place, fmt::format("'{}' has {}, which is not a tag", keys.tags, tag.dump()),
                 "expected names of tags, or their numbers");
  }
  if (row.tags.size() != row.example.words.size())
    refuse_row(place,
               fmt::format("'{}' has {} words, and '{}' {} tags", keys.words,
                           row.example.words.size(), keys.tags, row.tags.size()),
               "each word has one tag");
}

/** Objects with two lists. */
class ListRows : public TaggedRows {
 public:
  explicit ListRows(const DatasetOptions& options) : name_(options.path.string()), rows_(options) {
    is_read_ = rows_.next(row_);
    if (!is_read_) return;
    keys_ = choose_word_keys(object_of(row_, name_), options, name_);
    has_tags_ = !keys_.tags.empty();
    columns_ = fmt::format("words are column '{}'{}", keys_.words,
                           has_tags_ ? fmt::format(", tags are column '{}'", keys_.tags) : "");
    notes_.push_back(fmt::format("{}: {}", name_, columns_));
  }

  bool next(TaggedRow& row) override {
    if (!is_read_ && !rows_.next(row_)) return false;
    is_read_ = false;
    row.clear();
    row.place = fmt::format("{}:{}", name_, row_.line);
    fill_row(row, object_of(row_, name_), keys_);
    return true;
  }
  double share() const override { return rows_.share(); }

 private:
  std::string name_;
  ObjectRows rows_;
  JsonRow row_;
  bool is_read_ = false;  // row_ is one that was not given yet
  WordKeys keys_;
};

/** The columns of a line: between tabs where it has some, else between spaces. */
std::vector<std::string_view> columns_of(std::string_view line) {
  const bool has_tabs = line.find('\t') != line.npos;
  std::vector<std::string_view> columns;
  while (!line.empty()) {
    const size_t end = std::min(line.find(has_tabs ? '\t' : ' '), line.size());
    if (has_tabs || end > 0) columns.push_back(trim(line.substr(0, end)));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return columns;
}

/** The column that an option asks for by its number, or another. */
size_t column_of(std::string_view option, const std::string& asked, size_t otherwise) {
  if (asked.empty()) return otherwise;
  const auto number = canonical_integer(asked);
  constexpr size_t kDigits = 4;
  if (!number || number->starts_with('-') || number->size() > kDigits)
    throw Error(
        Fault::usage, "data.columns",
        fmt::format("{} is '{}', and the columns of a CoNLL file have no names", option, asked),
        "give its number, from 0");
  return static_cast<size_t>(std::stoul(*number));
}

/** A word a line, with a blank line behind each sentence. */
class ConllRows : public TaggedRows {
 public:
  explicit ConllRows(const DatasetOptions& options)
      : name_(options.path.string()),
        word_column_(column_of("text_column", options.text_column, 0)),
        tag_column_(column_of("label_column",
                              options.label_columns.empty() ? "" : options.label_columns.front(),
                              kLast)),
        file_(load_text_file(options)),
        lines_(file_.text()) {
    has_tags_ = options.labels != LabelUse::ignored;
    columns_ =
        fmt::format("words are column {}{}", word_column_,
                    !has_tags_             ? ""
                    : tag_column_ == kLast ? ", tags are the last column"
                                           : fmt::format(", tags are column {}", tag_column_));
  }

  bool next(TaggedRow& row) override {
    row.clear();
    for (std::string_view line; lines_.next(line);) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      const bool is_word = !trim(line).empty() && !trim(line).starts_with("-DOCSTART-");
      if (is_word) add(row, file_.take(line, utf8_));
      if (!is_word && !row.example.words.empty()) break;
    }
    const bool is_read = !row.example.words.empty();
    n_rows_ += is_read;
    if (!is_read) notes_ = {fmt::format("{}: {} sentences, {}", name_, n_rows_, columns_)};
    return is_read;
  }
  double share() const override { return lines_.share(); }

 private:
  static constexpr size_t kLast = std::string::npos;

  void add(TaggedRow& row, std::string_view line) const {
    const std::string place = fmt::format("{}:{}", name_, lines_.number());
    const auto fields = columns_of(line);
    const size_t of_tag = tag_column_ == kLast ? fields.size() - 1 : tag_column_;
    if (word_column_ >= fields.size() || (has_tags_ && of_tag >= fields.size()))
      refuse_row(
          place,
          fmt::format("the line has {} column{}", fields.size(), fields.size() == 1 ? "" : "s"),
          "text_column and label_column count from 0");
    if (has_tags_ && of_tag == word_column_)
      refuse_row(place, fmt::format("the word '{}' has no tag", fields[word_column_]),
                 "expected a word and its tag, with a space or tab between them");
    if (row.example.words.empty()) row.place = place;
    append_word(row.example, fields[word_column_]);
    if (has_tags_) row.tags.emplace_back(fields[of_tag]);
  }

  std::string name_;
  size_t word_column_, tag_column_;
  TextFile file_;
  Lines lines_;
  int64_t n_rows_ = 0;
  std::string utf8_;
};

/** Texts without tags, a line each. */
class PlainRows : public TaggedRows {
 public:
  explicit PlainRows(const DatasetOptions& options) : rows_(open_rows(options)) {}

  bool next(TaggedRow& row) override {
    row.clear();
    if (!rows_->next(row_)) return false;
    row.example.text = std::move(row_.text);
    row.place = row_.place;
    return true;
  }
  double share() const override { return rows_->share(); }

 private:
  std::unique_ptr<TextRows> rows_;
  RawRow row_;
};

void check_row(const TaggedRow& row) {
  const Example& example = row.example;
  if (trim(example.text).empty()) refuse_row(row.place, "the row has no words", "remove it");
  for (size_t i = 0; i < example.words.size(); ++i)
    if (trim(part_of(example.text, example.words[i])).empty())
      refuse_row(row.place, fmt::format("word {} of the row is empty", i + 1),
                 "remove it, and its tag");
  for (size_t i = 0; i < row.tags.size(); ++i) {
    if (trim(row.tags[i]).empty())
      refuse_row(row.place, fmt::format("the tag of word {} is empty", i + 1));
    check_name(row.place, row.tags[i]);
  }
}

LabelMap build_map(const std::string& name, const std::set<std::string>& tags) {
  if (tags.size() < 2)
    throw Error(
        Fault::data, "data.labels",
        fmt::format("'{}' has the one tag '{}', expected at least two", name, *tags.begin()),
        "is it the right label column?");
  return LabelMap::sorted({tags.begin(), tags.end()});
}

std::unique_ptr<TaggedRows> open_tagged(const DatasetOptions& options) {
  switch (options.format) {
    case DatasetFormat::jsonl:
    case DatasetFormat::parquet:
    case DatasetFormat::arrow:
      return std::make_unique<ListRows>(options);
    case DatasetFormat::conll:
      return std::make_unique<ConllRows>(options);
    case DatasetFormat::lines:
      return std::make_unique<PlainRows>(options);
    default:
      throw Error(Fault::data, "data.read",
                  fmt::format("'{}' is no file of words with a tag each", options.path.string()),
                  "they are read from .jsonl, .parquet, .arrow and .conll files; a file of another "
                  "name with a word "
                  "a line: dataset_format = conll");
  }
}

using TaggedFiles = RowFiles<TaggedRows>;

class WordStream : public ExampleStream {
 public:
  WordStream(const DatasetFiles& files, const LabelMap& tags, std::vector<std::string> notes)
      : rows_(files, open_tagged), tags_(tags), notes_(std::move(notes)) {}

  bool next(Example& example) override {
    if (!rows_.next(row_)) return false;
    check_row(row_);
    for (const std::string& tag : row_.tags) {
      const auto id = tags_.find(tag);
      if (!id)
        refuse_row(row_.place,
                   fmt::format("the tag '{}' is unknown, expected one of: {}", tag, tags_.list()),
                   "the tags are those of the training set");
      row_.example.label.tags.push_back(*id);
    }
    example = std::move(row_.example);
    return true;
  }
  int64_t n_bytes_read() const override { return rows_.n_bytes_read(); }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  TaggedFiles rows_;
  const LabelMap& tags_;
  std::vector<std::string> notes_;
  TaggedRow row_;
};

class WordReader : public DatasetReader {
 public:
  WordReader(const DatasetFiles& files, const LabelScheme* known) : DatasetReader(files) {
    TaggedFiles rows(files, open_tagged);
    std::set<std::string> tags;
    bool has_tags = false;
    for (TaggedRow row; rows.next(row);) {
      check_row(row);
      tags.insert(row.tags.begin(), row.tags.end());
      has_tags |= rows.source().has_tags();
    }
    notes_ = rows.notes();
    if (has_tags) {
      scheme_ = known ? *known
                      : LabelScheme{.problem = ProblemType::tags,
                                    .labels = build_map(files.options.path.string(), tags),
                                    .has_pairs = std::nullopt};
      notes_.push_back(fmt::format("{} tags: {}", scheme_.labels.size(), scheme_.labels.list()));
    }
    for (std::string& note : notes_)
      note = escaped(note);
    scheme_.has_pairs = false;
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<WordStream>(files_, scheme_.labels, notes_);
  }
};

}  // namespace

std::unique_ptr<DatasetReader> open_words(const DatasetFiles& files, const LabelScheme* known) {
  return std::make_unique<WordReader>(files, known);
}

}  // namespace ferry
