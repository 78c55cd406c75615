// Texts that come in words, with a tag for each: JSONL with two lists a row, and CoNLL files.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
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
  std::vector<std::string> tags;  // as many as words, empty of a word without one; none where the
                                  // file has none
  std::string place;

  void clear() {
    example = {};
    tags.clear();
  }
};

class TaggedRows : public RowSource<TaggedRow> {
 public:
  bool has_tags() const { return has_tags_; }
  /** Of the tags 0, 1, ..., where the data names them. */
  const std::vector<std::string>& tag_names() const { return tag_names_; }

 protected:
  bool has_tags_ = false;
  std::vector<std::string> tag_names_;
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
    if (row.tags.back().empty() && !tag.is_null() && !tag.is_string())
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
    if (has_tags_) tag_names_ = rows_.label_names(keys_.tags);
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

bool has_tab(std::string_view line) {
  return line.find('\t') != line.npos;
}

bool begins_document(std::string_view line) {
  return trim(line).starts_with("-DOCSTART-");
}

/** The form of a file's lines, by its first sentence. */
struct ConllShape {
  bool has_tabs = false;
  size_t n_columns = 0;         // 0: nothing but comments was seen
  bool counts_words = false;    // column 0 is 1, 2, 3, ...
  bool repeats_column = false;  // column 0 is one and the same, as the document's name is

  /** Universal Dependencies: ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC. */
  bool is_conllu() const { return has_tabs && n_columns == 10 && counts_words; }
};

ConllShape shape_of(std::string_view text) {
  constexpr int64_t kLines = 200;  // of the sentence
  ConllShape shape;
  Lines lines(text);
  int64_t n = 0, n_counted = 0, n_numbers = 0;
  bool is_repeated = true;
  std::string first;
  for (std::string_view line; n < kLines && lines.next(line);) {
    if (trim(line).empty() && n > 0) break;
    if (trim(line).empty() || begins_document(line) || (n == 0 && line.starts_with('#'))) continue;
    const auto fields = columns_of(line);
    if (n++ == 0) {
      shape.has_tabs = has_tab(line);
      shape.n_columns = fields.size();
      first = fields.front();
    }
    is_repeated &= fields.front() == first;
    // Tokens of several words (1-2) and words that are only meant (1.1) are not counted.
    if (fields.front().find_first_of("-.") != std::string_view::npos) continue;
    ++n_numbers;
    n_counted += fields.front() == std::to_string(n_numbers);
  }
  constexpr int64_t kFew = 2;  // a single word may be the number 1
  const bool may_be_conllu = shape.has_tabs && shape.n_columns == 10;
  shape.counts_words =
      shape.n_columns > 2 && n_counted == n_numbers && n_numbers >= (may_be_conllu ? 1 : kFew);
  shape.repeats_column = shape.n_columns > 2 && is_repeated && n > kFew;
  return shape;
}

/** A word a line, with a blank line behind each sentence. */
class ConllRows : public TaggedRows {
 public:
  explicit ConllRows(const DatasetOptions& options)
      : name_(options.path.string()),
        file_(load_text_file(options)),
        lines_(file_.text()),
        shape_(shape_of(file_.text())) {
    constexpr size_t kForm = 1, kUpos = 3;
    const bool is_conllu = shape_.is_conllu();
    const std::string asked = options.label_columns.empty() ? "" : options.label_columns.front();
    if (options.text_column.empty() && !is_conllu) check_first_column();
    word_column_ = column_of("text_column", options.text_column, is_conllu ? kForm : 0);
    tag_column_ = column_of("label_column", asked, is_conllu ? kUpos : kLast);
    has_tags_ = options.labels != LabelUse::ignored;
    columns_ =
        fmt::format("words are column {}{}{}", word_column_,
                    !has_tags_             ? ""
                    : tag_column_ == kLast ? ", tags are the last column"
                                           : fmt::format(", tags are column {}", tag_column_),
                    is_conllu ? " of CoNLL-U" : "");
  }

  bool next(TaggedRow& row) override {
    row.clear();
    for (std::string_view line; lines_.next(line);) {
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (row.example.words.empty() && is_comment(line)) {
        ++n_comments_;
        continue;
      }
      const bool is_word = !trim(line).empty() && !begins_document(line);
      if (is_word) add(row, file_.take(line, utf8_));
      if (!is_word && !row.example.words.empty()) break;
    }
    const bool is_read = !row.example.words.empty();
    n_rows_ += is_read;
    if (!is_read) note();
    return is_read;
  }
  double share() const override { return lines_.share(); }

 private:
  static constexpr size_t kLast = std::string::npos;

  void check_first_column() const {
    if (shape_.counts_words || shape_.repeats_column)
      throw Error(Fault::data, "data.columns",
                  fmt::format("column 0 of '{}' {}", name_,
                              shape_.counts_words ? "counts the words"
                                                  : "is the same in each line of a sentence"),
                  "name the columns of the words and of the tags, from 0: text_column = 1, "
                  "label_column = 2");
  }

  void note() {
    notes_ = {fmt::format("{}: {} sentences, {}", name_, n_rows_, columns_)};
    if (n_comments_ > 0)
      notes_.push_back(fmt::format("{}: {} comment{} before sentences {} passed over", name_,
                                   n_comments_, n_comments_ == 1 ? "" : "s",
                                   n_comments_ == 1 ? "is" : "are"));
  }

  /** Before a sentence: a line that begins with # and has another form than the words. A hashtag
   * with its tag has theirs. */
  bool is_comment(std::string_view line) const {
    if (!line.starts_with('#') || shape_.n_columns == 0) return false;
    if (has_tab(line) != shape_.has_tabs) return true;
    const auto fields = columns_of(line);
    return fields.size() != shape_.n_columns || fields.front().find(' ') != std::string::npos ||
           std::ranges::any_of(fields, [](std::string_view field) { return field == "="; }) ||
           (fields.size() > 1 && fields.back().find('=') != std::string::npos);
  }

  void add(TaggedRow& row, std::string_view line) const {
    const std::string place = fmt::format("{}:{}", name_, lines_.number());
    const auto fields = columns_of(line);
    // A line for several words stands before theirs, and one for no word of the text among them.
    if (shape_.is_conllu() && fields.front().find_first_of("-.") != std::string_view::npos) return;
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
    const bool has_none = has_tags_ && shape_.is_conllu() && fields[of_tag] == "_";
    if (has_tags_) row.tags.emplace_back(has_none ? "" : fields[of_tag]);
  }

  std::string name_;
  size_t word_column_ = 0, tag_column_ = 0;
  TextFile file_;
  Lines lines_;
  ConllShape shape_;
  int64_t n_rows_ = 0, n_comments_ = 0;
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
  for (size_t i = 0; i < example.words.size(); ++i)
    if (trim(part_of(example.text, example.words[i])).empty())
      refuse_row(row.place, fmt::format("word {} of the row is empty", i + 1),
                 "remove it, and its tag");
  for (const std::string& tag : row.tags)
    check_name(row.place, tag);
}

/** From tags as texts to ids. */
class TagReading {
 public:
  /** Adds a row's tags; the first pass. `names`: of the tags 0, 1, ..., where the data has some. */
  void add(const TaggedRow& row, const std::vector<std::string>& names) {
    if (names_.empty() && !are_asked_) names_ = names;
    for (const std::string& tag : row.tags)
      if (tags_.try_emplace(tag, row.place).second) {
        const auto number = canonical_integer(tag);
        are_counted_ &= number.has_value() || is_none(tag);
        has_below_ |= number && std::stoll(*number) < -1 && tag != "-100";
      }
  }

  void ask_for(const std::vector<std::string>& names) {
    names_ = names;
    are_asked_ = !names.empty();
  }

  /** After the first pass. Error(data) where there are less than two tags. */
  LabelMap make_map(const std::string& name) const {
    if (!names_.empty()) return LabelMap(names_);
    std::vector<std::string> tags;
    for (const auto& [tag, place] : tags_)
      if (!is_none(tag)) tags.push_back(tag);
    if (tags.size() < 2)
      throw Error(Fault::data, "data.labels",
                  tags.empty() ? fmt::format("no word of '{}' has a tag", name)
                               : fmt::format("'{}' has the one tag '{}', expected at least two",
                                             name, tags.front()),
                  "is it the right label column?");
    return LabelMap::sorted(std::move(tags));
  }

  /** -1 of a word without one. */
  int32_t id_of(const std::string& tag, const LabelMap& map, const std::string& place) const {
    if (is_none(tag)) return -1;
    const auto number = canonical_integer(tag);
    const bool is_place =
        number && !names_.empty() && !(are_asked_ && std::ranges::count(names_, tag) > 0);
    std::string_view name = tag;
    if (is_place) {
      const int64_t at = std::stoll(*number);
      if (at < 0 || at >= std::ssize(names_))
        refuse_row(place, fmt::format("the tag {} has no name, there are {}", tag, names_.size()),
                   "label_names names the tags 0, 1, ... in their order");
      name = names_[static_cast<size_t>(at)];
    }
    const auto id = map.find(name);
    if (!id)
      refuse_row(place,
                 fmt::format("the tag '{}' is unknown, expected one of: {}", name, map.list()),
                 "the tags are those of the training set");
    return *id;
  }

 private:
  /** Words without a tag: torch and transformers write -100, the hub -1. */
  bool is_none(const std::string& tag) const {
    if (trim(tag).empty() || tag == "-100") return true;
    return tag == "-1" && are_counted_ && !has_below_ && std::ranges::count(names_, tag) == 0;
  }

  std::map<std::string, std::string> tags_;  // with the first row that has them
  std::vector<std::string> names_;
  bool are_asked_ = false;  // the user named them
  bool are_counted_ = true, has_below_ = false;
};

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

/** Notes of the rows with the number of those that had no words. */
std::vector<std::string> notes_of(const TaggedFiles& rows, int64_t n_empty) {
  std::vector<std::string> notes = rows.notes();
  if (n_empty > 0)
    notes.push_back(fmt::format("{} row{} without words {} passed over", n_empty,
                                n_empty == 1 ? "" : "s", n_empty == 1 ? "is" : "are"));
  return notes;
}

class WordStream : public ExampleStream {
 public:
  WordStream(const DatasetFiles& files,
             const TagReading& reading,
             const LabelMap& tags,
             std::vector<std::string> notes)
      : rows_(files, open_tagged),
        keeps_empty_(files.options.keeps_empty),
        reading_(reading),
        tags_(tags),
        notes_(std::move(notes)) {}

  bool next(Example& example) override {
    do {
      if (!rows_.next(row_)) return false;
    } while (!keeps_empty_ && trim(row_.example.text).empty());
    check_row(row_);
    for (const std::string& tag : row_.tags)
      row_.example.label.tags.push_back(reading_.id_of(tag, tags_, row_.place));
    example = std::move(row_.example);
    example.place = row_.place;
    return true;
  }
  int64_t n_bytes_read() const override { return rows_.n_bytes_read(); }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  TaggedFiles rows_;
  bool keeps_empty_;
  const TagReading& reading_;
  const LabelMap& tags_;
  std::vector<std::string> notes_;
  TaggedRow row_;
};

class WordReader : public DatasetReader {
 public:
  WordReader(const DatasetFiles& files, const LabelScheme* known) : DatasetReader(files) {
    const std::string name = files.options.path.string();
    TaggedFiles rows(files, open_tagged);
    reading_.ask_for(files.options.label_names);
    bool has_tags = false;
    int64_t n_empty = 0, n = 0;
    for (TaggedRow row; rows.next(row);) {
      if (!files.options.keeps_empty && trim(row.example.text).empty()) {
        ++n_empty;
        continue;
      }
      check_row(row);
      ++n;
      has_tags |= rows.source().has_tags();
      if (has_tags) reading_.add(row, rows.source().tag_names());
    }
    if (n == 0)
      throw Error(Fault::data, "data.read",
                  fmt::format("'{}' has no examples: none of {} rows has words", name, n_empty),
                  "is it the right column?");
    notes_ = notes_of(rows, n_empty);
    if (has_tags) {
      scheme_ = known ? *known
                      : LabelScheme{.problem = ProblemType::tags,
                                    .labels = reading_.make_map(name),
                                    .has_pairs = std::nullopt};
      notes_.push_back(fmt::format("{} tags: {}", scheme_.labels.size(), scheme_.labels.list()));
      if (!scheme_.labels.has_entities())
        notes_.emplace_back(
            "no tag begins with B- or I-: scores are those of words, not of entities");
    }
    for (std::string& note : notes_)
      note = escaped(note);
    scheme_.has_pairs = false;
  }

  std::unique_ptr<ExampleStream> examples() const override {
    return std::make_unique<WordStream>(files_, reading_, scheme_.labels, notes_);
  }

 private:
  TagReading reading_;
};

}  // namespace

std::unique_ptr<DatasetReader> open_words(const DatasetFiles& files, const LabelScheme* known) {
  return std::make_unique<WordReader>(files, known);
}

}  // namespace ferry
