// Texts that come in words, with a tag for each: JSONL with two lists a row, and CoNLL files.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/formats/table_file.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** A row before its tags mean anything. */
struct TaggedRow {
  Example example;
  std::vector<std::string> tags;  // as many as words; none where the file has none
  uint32_t file = 0;              // place in TaggedRows::files
  int64_t line = 0;
};

struct TaggedRows {
  std::string name;  // of the dataset as a whole: its path
  std::vector<std::string> files;
  std::string columns;  // what was taken for what, without the file's name
  std::vector<TaggedRow> rows;
  std::vector<std::string> notes;
  bool has_tags = false;

  std::string place(const TaggedRow& row) const {
    return fmt::format("{}:{}", files[row.file], row.line);
  }
};

/** Of one file. */
TaggedRows no_rows_of(const DatasetOptions& options) {
  TaggedRows rows;
  rows.files = {options.path.string()};
  return rows;
}

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

TaggedRow row_of(const ordered_json& object,
                 const WordKeys& keys,
                 const std::string& place,
                 int64_t line) {
  TaggedRow row;
  row.line = line;
  const ordered_json& words = list_of(object, keys.words, keys.tags.empty(), place);
  if (words.is_string()) {
    row.example.text = words.get<std::string>();
    return row;
  }
  for (const ordered_json& word : words) {
    if (!word.is_string())
      refuse_row(place, fmt::format("'{}' has {}, which is not a text", keys.words, word.dump()));
    append_word(row.example, word.get_ref<const std::string&>());
  }
  if (keys.tags.empty()) return row;
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
  return row;
}

TaggedRows read_lists(const DatasetOptions& options) {
  TaggedRows rows = no_rows_of(options);
  const std::string& name = rows.files.front();
  const TextFile file = load_objects(options);
  std::optional<WordKeys> keys;
  JsonRows objects(file.text, name);
  for (JsonRow row; objects.next(row);) {
    const ordered_json object = object_of(row, name);
    if (!keys) {
      keys = choose_word_keys(object, options, name);
      rows.has_tags = !keys->tags.empty();
      rows.columns =
          fmt::format("words are column '{}'{}", keys->words,
                      rows.has_tags ? fmt::format(", tags are column '{}'", keys->tags) : "");
      rows.notes.push_back(fmt::format("{}: {}", name, rows.columns));
    }
    rows.rows.push_back(row_of(object, *keys, fmt::format("{}:{}", name, row.line), row.line));
  }
  return rows;
}

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

TaggedRows read_conll(const DatasetOptions& options) {
  TaggedRows rows = no_rows_of(options);
  rows.has_tags = options.labels != LabelUse::ignored;
  constexpr size_t kLast = std::string::npos;
  const size_t word_column = column_of("text_column", options.text_column, 0);
  const size_t tag_column = column_of(
      "label_column", options.label_columns.empty() ? "" : options.label_columns.front(), kLast);
  const TextFile file = load_text_file(options.path, options.encoding);
  int64_t number = 0;
  bool is_inside = false;
  for (std::string_view rest = file.text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    const bool is_word = !trim(line).empty() && !trim(line).starts_with("-DOCSTART-");
    if (!is_word) {
      is_inside = false;
      continue;
    }
    const std::string place = fmt::format("{}:{}", rows.files.front(), number);
    const auto columns = columns_of(line);
    const size_t of_tag = tag_column == kLast ? columns.size() - 1 : tag_column;
    if (word_column >= columns.size() || (rows.has_tags && of_tag >= columns.size()))
      refuse_row(
          place,
          fmt::format("the line has {} column{}", columns.size(), columns.size() == 1 ? "" : "s"),
          "text_column and label_column count from 0");
    if (rows.has_tags && of_tag == word_column)
      refuse_row(place, fmt::format("the word '{}' has no tag", columns[word_column]),
                 "expected a word and its tag, with a space or tab between them");
    if (!is_inside) rows.rows.emplace_back().line = number;
    is_inside = true;
    append_word(rows.rows.back().example, columns[word_column]);
    if (rows.has_tags) rows.rows.back().tags.emplace_back(columns[of_tag]);
  }
  rows.columns =
      fmt::format("words are column {}{}", word_column,
                  !rows.has_tags        ? ""
                  : tag_column == kLast ? ", tags are the last column"
                                        : fmt::format(", tags are column {}", tag_column));
  rows.notes.push_back(
      fmt::format("{}: {} sentences, {}", rows.files.front(), rows.rows.size(), rows.columns));
  return rows;
}

/** Texts without tags, a line each. */
TaggedRows read_plain(const DatasetOptions& options) {
  TaggedRows rows = no_rows_of(options);
  for (RawRow& row : read_lines(options).rows) {
    TaggedRow& tagged = rows.rows.emplace_back();
    tagged.example.text = std::move(row.text);
    tagged.line = row.line;
  }
  return rows;
}

void check_row(const TaggedRows& all, const TaggedRow& row) {
  const Example& example = row.example;
  if (trim(example.text).empty()) refuse_row(all.place(row), "the row has no words", "remove it");
  for (size_t i = 0; i < example.words.size(); ++i)
    if (trim(part_of(example.text, example.words[i])).empty())
      refuse_row(all.place(row), fmt::format("word {} of the row is empty", i + 1),
                 "remove it, and its tag");
  for (size_t i = 0; i < row.tags.size(); ++i) {
    if (trim(row.tags[i]).empty())
      refuse_row(all.place(row), fmt::format("the tag of word {} is empty", i + 1));
    check_name(all.place(row), row.tags[i]);
  }
}

LabelMap build_map(const TaggedRows& all) {
  std::set<std::string> names;
  for (const TaggedRow& row : all.rows)
    names.insert(row.tags.begin(), row.tags.end());
  if (names.size() < 2)
    throw Error(
        Fault::data, "data.labels",
        fmt::format("'{}' has the one tag '{}', expected at least two", all.name, *names.begin()),
        "is it the right label column?");
  return LabelMap::sorted({names.begin(), names.end()});
}

/** Rows of one file. */
TaggedRows read_tagged(const DatasetOptions& options) {
  switch (options.format) {
    case DatasetFormat::jsonl:
    case DatasetFormat::parquet:
    case DatasetFormat::arrow:
      return read_lists(options);
    case DatasetFormat::conll:
      return read_conll(options);
    case DatasetFormat::lines:
      return read_plain(options);
    default:
      throw Error(Fault::data, "data.read",
                  fmt::format("'{}' is no file of words with a tag each", options.path.string()),
                  "they are read from .jsonl, .parquet, .arrow and .conll files; a file of another "
                  "name with a word "
                  "a line: dataset_format = conll");
  }
}

/** Adds the rows of a file to those of files before it. */
void append(TaggedRows& all, TaggedRows one) {
  const std::string& file = one.files.front();
  check_same_columns(file, one.columns, all.files.front(), all.columns);
  for (TaggedRow& row : one.rows) {
    row.file = static_cast<uint32_t>(all.files.size());
    all.rows.push_back(std::move(row));
  }
  all.files.push_back(file);
}

}  // namespace

Dataset read_words(const DatasetOptions& options,
                   const std::vector<std::filesystem::path>& files,
                   DatasetFormat format,
                   const LabelScheme* known) {
  TaggedRows all;
  for (const std::filesystem::path& file : files) {
    TaggedRows one = read_tagged(options_of_file(options, file, format));
    if (one.rows.empty())
      throw Error(Fault::data, "data.read", fmt::format("'{}' has no examples", file.string()),
                  "is it the right file?");
    if (all.files.empty())
      all = std::move(one);
    else
      append(all, std::move(one));
  }
  all.name = options.path.string();
  for (const TaggedRow& row : all.rows)
    check_row(all, row);
  Dataset dataset;
  dataset.notes = std::move(all.notes);
  if (all.has_tags) {
    dataset.scheme = known ? *known
                           : LabelScheme{.problem = ProblemType::tags,
                                         .labels = build_map(all),
                                         .has_pairs = std::nullopt};
    const LabelMap& tags = dataset.scheme.labels;
    dataset.notes.push_back(fmt::format("{} tags: {}", tags.size(), tags.list()));
  }
  for (std::string& note : dataset.notes)
    note = escaped(note);
  dataset.scheme.has_pairs = false;
  for (TaggedRow& row : all.rows) {
    for (const std::string& tag : row.tags) {
      const auto id = dataset.scheme.labels.find(tag);
      if (!id)
        refuse_row(all.place(row),
                   fmt::format("the tag '{}' is unknown, expected one of: {}", tag,
                               dataset.scheme.labels.list()),
                   "the tags are those of the training set");
      row.example.label.tags.push_back(*id);
    }
    dataset.examples.push_back(std::move(row.example));
  }
  return dataset;
}

}  // namespace ferry
