// The kinds of source, each from a file or folder to rows.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/chat/rows.h"
#include "src/data/read/chat_rows.h"
#include "src/data/read/columns.h"
#include "src/data/read/formats/class_labels.h"
#include "src/data/read/formats/delimited.h"
#include "src/data/read/formats/delimiter.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/formats/text_file.h"
#include "src/data/read/lines.h"
#include "src/data/read/object_rows.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kSampleRows = 2000;  // looked at to tell a header and guess columns

void note_encoding(std::vector<std::string>& notes, bool is_latin1, const std::string& file) {
  if (is_latin1) notes.push_back(fmt::format("{} is not UTF-8, read as Latin-1", file));
}

[[noreturn]] void refuse_path(const stdfs::path& path,
                              std::string_view what,
                              std::error_code code) {
  throw Error(Fault::data, "data.read",
              fmt::format("'{}' {}: {}", path.string(), what, code.message()), "check the path");
}

/** A folder of somebody else may have a link to any file of the user in it. */
void refuse_link_out(const stdfs::path& entry, const stdfs::path& folder) {
  std::error_code code;
  if (!stdfs::is_symlink(stdfs::symlink_status(entry, code))) return;
  const stdfs::path target = stdfs::weakly_canonical(entry, code);
  const stdfs::path whole = stdfs::weakly_canonical(folder, code);
  if (std::ranges::mismatch(whole, target).in1 == whole.end()) return;
  throw Error(Fault::data, "data.read",
              fmt::format("'{}' is a link that leads out of the folder, to '{}'", entry.string(),
                          target.string()),
              "put the text itself there, or remove the link");
}

/** Sorted entries of a directory without the hidden ones: the same order on every file system. */
std::vector<stdfs::path> sorted_entries(const stdfs::path& directory) {
  std::error_code code;
  std::vector<stdfs::path> paths;
  // Not a range-for: its step throws what is no Error.
  for (stdfs::directory_iterator entry(directory, code), end; !code && entry != end;
       entry.increment(code))
    if (!entry->path().filename().string().starts_with('.')) paths.push_back(entry->path());
  if (code) refuse_path(directory, "cannot be listed", code);
  std::sort(paths.begin(), paths.end());
  return paths;
}

/** True if an entry of a directory is a directory. A link that leads nowhere or to itself is an
 * error: what it stood for would be missing in silence. */
bool is_folder(const stdfs::path& path) {
  std::error_code code;
  const stdfs::file_status status = stdfs::status(path, code);
  if (!stdfs::exists(status)) refuse_path(path, "cannot be looked at", code);
  return stdfs::is_directory(status);
}

/** The label that a folder's name is. */
std::string label_of(const stdfs::path& folder) {
  std::string label = folder.filename().string();
  if (first_invalid_utf8(label) != std::string::npos)
    throw Error(
        Fault::data, "data.labels",
        fmt::format("the name of the folder '{}' is its label and is not UTF-8", folder.string()),
        "rename the folder");
  return label;
}

/** A document: part by part where it is large. */
class Document {
 public:
  explicit Document(TextFile file) : file_(std::move(file)) {}

  bool is_blank() const { return trim(file_.text()).empty(); }
  bool was_latin1() const { return file_.is_latin1(); }
  double share() const {
    return static_cast<double>(at_) / static_cast<double>(std::max<size_t>(file_.text().size(), 1));
  }

  /** The whole of it. */
  void whole(RawRow& row) {
    row.text = file_.take(file_.text(), utf8_);
    row.part = TextPart::whole;
    at_ = file_.text().size();
  }
  /** False at the end. */
  bool next(RawRow& row) {
    const std::string_view text = file_.text();
    if (at_ >= text.size()) return false;
    const std::string_view piece = whole_characters(text.substr(at_), kPiece_bytes);
    row.text = file_.take(piece, utf8_);
    const size_t end = at_ + piece.size();
    row.part = part_that(at_ == 0, end == text.size());
    at_ = end;
    return true;
  }

 private:
  static constexpr size_t kPiece_bytes = 1 << 20;

  TextFile file_;
  std::string utf8_;
  size_t at_ = 0;
};

/** A folder's documents, under their labels or, for language models, beside each other. */
class FolderRows : public TextRows {
 public:
  explicit FolderRows(const DatasetOptions& options) : options_(options) {
    head_.has_labels = options.labels != LabelUse::ignored;
    head_.is_folder = true;
    list();
    if (files_.empty()) refuse_bare();
    notes_.push_back(
        fmt::format("{}: {} documents{}", options.path.string(), files_.size(),
                    head_.has_labels ? fmt::format(" under {} labels", n_labels_) : ""));
    if (n_other_ > 0)
      notes_.push_back(fmt::format("{} entries that are no .txt files were left out", n_other_));
  }

  bool next(RawRow& row) override {
    if (options_.rows == RowForm::documents && document_ && document_->next(row)) return true;
    if (next_ == files_.size()) return false;
    const auto& [file, label] = files_[next_++];
    document_.emplace(load_text_file(file, options_.encoding));
    n_latin1_ += document_->was_latin1();
    row.text_pair.reset();
    row.labels.clear();
    if (head_.has_labels && !label.empty()) row.labels.push_back(label);
    row.place = file.string();
    if (options_.rows != RowForm::documents || !document_->next(row)) document_->whole(row);
    if (next_ == files_.size() && n_latin1_ > 0) note_latin1();
    return true;
  }
  double share() const override {
    return static_cast<double>(next_) / static_cast<double>(files_.size());
  }

 private:
  void list() {
    for (const stdfs::path& label : sorted_entries(options_.path)) {
      const bool is_label = is_folder(label);
      refuse_link_out(label, options_.path);
      if (!is_label) {
        add_beside(label);
        continue;
      }
      const size_t n_before = files_.size();
      for (const stdfs::path& document : sorted_entries(label)) {
        const bool is_deeper = is_folder(document);
        refuse_link_out(document, options_.path);
        if (document.extension() == ".txt" && !is_deeper) {
          files_.emplace_back(document, head_.has_labels ? label_of(label) : "");
          continue;
        }
        has_deeper_ |= is_deeper;
        ++n_other_;
      }
      if (files_.size() > n_before)
        ++n_labels_;
      else
        head_.bare_folders.push_back(label.filename().string());
    }
  }

  /** A file beside the sub-directories. */
  void add_beside(const stdfs::path& file) {
    const std::string extension = file.extension().string();
    if (options_.rows == RowForm::documents && extension == ".txt")
      files_.emplace_back(file, "");
    else if (extension == ".tsv" || extension == ".csv" || extension == ".jsonl")
      table_ = file.string();
  }

  [[noreturn]] void refuse_bare() const {
    std::string hint = options_.rows == RowForm::documents
                           ? "expected a .txt file per document"
                           : "expected a sub-directory per label with a .txt file per document";
    if (!table_.empty())
      hint = fmt::format("did you mean the file '{}'?", table_);
    else if (has_deeper_)
      hint += "; is the dataset one of its sub-directories?";
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' has no documents", options_.path.string()), hint);
  }

  void note_latin1() {
    notes_.push_back(fmt::format("{} of the documents {} not UTF-8, read as Latin-1", n_latin1_,
                                 n_latin1_ == 1 ? "is" : "are"));
  }

  DatasetOptions options_;
  std::vector<std::pair<stdfs::path, std::string>> files_;  // with their labels
  std::string table_;  // a file that would rather be the dataset, for the hint
  bool has_deeper_ = false;
  size_t n_labels_ = 0, n_other_ = 0, n_latin1_ = 0;
  size_t next_ = 0;
  std::optional<Document> document_;
};

class DelimitedRows : public TextRows {
 public:
  DelimitedRows(const DatasetOptions& options, DatasetFormat format)
      : name_(options.path.string()), file_(load_text_file(options)) {
    note_encoding(notes_, file_.is_latin1(), name_);
    const Separation split = choose_separation(file_.text(), name_, options, format);
    if (!split.note.empty()) notes_.push_back(split.note);
    reader_.emplace(file_.text().substr(split.n_skipped), name_, split.delimiter, split.quoting,
                    split.n_skipped > 0 ? 2 : 1);
    std::vector<DelimitedRow> sample = first_rows();
    if (sample.empty()) throw Error(Fault::data, "data.read", fmt::format("'{}' is empty", name_));
    has_header_ = options.header == HeaderRow::present ||
                  (options.header == HeaderRow::automatic && looks_like_header(sample, options));
    n_columns_ = sample.front().fields.size();
    std::vector<std::string> names;
    if (has_header_) {
      names = sample.front().fields;
      sample.erase(sample.begin());
      reader_->next(fields_);
    } else if (options.header == HeaderRow::automatic) {
      head_.unknown_header = fmt::format("{}", fmt::join(sample.front().fields, ", "));
    }
    roles_ = choose_columns(names, sample, options, name_, split.delimiter);
    columns_ = roles_.note + (has_header_ ? "" : ", no header");
    notes_.push_back(fmt::format("{}: {}", name_, columns_));
    head_.has_labels = !roles_.labels.empty();
    if (roles_.labels.size() == 1 && !names.empty())
      head_.label_names = class_label_names(name_, {}, names[roles_.labels.front()]);
    names_ = names;
    for (size_t column = names_.size(); column < n_columns_; ++column)
      names_.push_back(std::to_string(column));
    if (roles_.labels.size() > 1)
      for (size_t column : roles_.labels)
        head_.hot_columns.push_back(names_[column]);
    for (size_t column = 0; column < n_columns_; ++column) {
      if (std::ranges::count(roles_.below, names_[column]) > 0) below_.push_back(column);
      if (roles_.is_unread(column, names_[column])) unread_.push_back(column);
    }
    std::vector<std::string> unread;
    for (size_t column : unread_)
      unread.push_back(names_[column]);
    if (!unread.empty()) notes_.push_back(fmt::format("{}: {}", name_, note_of_unread(unread)));
  }

  bool next(RawRow& row) override {
    if (!reader_->next(fields_)) return false;
    file_.take_to(reader_->place());
    for (std::string& field : fields_.fields)
      file_.to_utf8(field);
    row.place = fmt::format("{}:{}", name_, fields_.line);
    check_width(row.place);
    row.labels.clear();
    for (size_t column : roles_.labels)
      row.labels.emplace_back(trim(fields_.fields[column]));
    row.is_unlabelled = row.labels.size() == 1 && row.labels.front().empty();
    row.text_pair.reset();
    if (roles_.text_pair) row.text_pair = fields_.fields[*roles_.text_pair];
    row.text = fields_.fields[roles_.text];
    for (size_t column : below_)
      add_below(row.text, fields_.fields[column]);
    for (size_t column : unread_)
      if (const std::string_view field = trim(fields_.fields[column]); !field.empty())
        refuse_meaning(row.place, names_[column], is_flag(field), roles_);
    return true;
  }
  double share() const override {
    return static_cast<double>(reader_->place() - file_.text().data()) /
           static_cast<double>(std::max<size_t>(file_.text().size(), 1));
  }

 private:
  std::vector<DelimitedRow> first_rows() {
    std::vector<DelimitedRow> sample;
    DelimitedRow row;
    for (DelimitedReader ahead = *reader_; sample.size() < kSampleRows && ahead.next(row);) {
      file_.take_to(ahead.place());
      sample.push_back(row);
      for (std::string& field : sample.back().fields)
        file_.to_utf8(field);
    }
    return sample;
  }

  static bool is_flag(std::string_view field) {
    constexpr std::string_view kFlags[] = {"true", "false", "True", "False", "TRUE", "FALSE"};
    return std::ranges::count(kFlags, field) > 0;
  }

  void check_width(const std::string& place) const {
    const size_t n = fields_.fields.size();
    if (n == n_columns_) return;
    refuse_row(
        place,
        fmt::format("{} field{}, expected {} as in the {}", n, n == 1 ? "" : "s", n_columns_,
                    has_header_ ? "header" : "first row"),
        n < n_columns_ ? "a field is missing" : "is a delimiter inside a text that is not quoted?");
  }

  std::string name_;
  TextFile file_;
  std::optional<DelimitedReader> reader_;
  bool has_header_ = false;
  size_t n_columns_ = 0;
  std::vector<std::string> names_;  // of the columns; numbers without a header
  Columns roles_;
  std::vector<size_t> below_, unread_;
  DelimitedRow fields_;
};

/** A label as text, empty for null; nullopt for what no label is (objects, nested lists). */
std::optional<std::string> label_text(const nlohmann::ordered_json& value) {
  if (value.is_null()) return std::string();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

/** Turns of a chat: a list of objects. */
bool is_chat(const nlohmann::ordered_json& value) {
  return value.is_array() && !value.empty() && value.front().is_object();
}

/** A text, a list or a flag that says something. */
bool has_content(const nlohmann::ordered_json& value) {
  if (value.is_string()) return !trim(value.get_ref<const std::string&>()).empty();
  return value.is_boolean() || ((value.is_array() || value.is_object()) && !value.empty());
}

class ObjectTexts : public TextRows {
 public:
  explicit ObjectTexts(const DatasetOptions& options)
      : options_(options), name_(options.path.string()), rows_(options) {
    note_encoding(notes_, rows_.was_latin1(), name_);
    is_read_ = rows_.next(row_);
    if (is_read_) choose(object_of(row_, name_));
  }

  bool next(RawRow& row) override {
    if (!is_read_ && !rows_.next(row_)) {
      note_below();
      return false;
    }
    is_read_ = false;
    row.place = place();
    nlohmann::ordered_json object = object_of(row_, name_);
    check_unread(object, row.place);
    row.text = text_of(object, keys_[roles_.text]);
    if (!roles_.below.empty()) join_below(row, object);
    row.text_pair.reset();
    if (roles_.text_pair) row.text_pair = text_of(object, keys_[*roles_.text_pair]);
    row.labels.clear();
    row.has_list = row.is_unlabelled = false;
    for (size_t column : roles_.labels)
      add_labels(row, field(object, keys_[column]), keys_[column]);
    ++n_rows_;
    return true;
  }
  double share() const override { return rows_.share(); }

 private:
  std::string place() const { return fmt::format("{}:{}", name_, row_.line); }

  /** The columns are places in the first object. */
  void choose(const nlohmann::ordered_json& object) {
    for (const auto& [key, value] : object.items())
      keys_.push_back(key);
    if (keys_.empty()) refuse_row(place(), "the object is empty");
    if (options_.text_column.empty() && options_.rows == RowForm::documents)
      for (const auto& [key, value] : object.items())
        if (chat::has_turns(value)) refuse_turns(key);
    roles_ = choose_columns(keys_, {}, options_, name_, '\0');
    columns_ = roles_.note;
    notes_.push_back(fmt::format("{}: {}", name_, columns_));
    head_.has_labels = !roles_.labels.empty();
    if (roles_.labels.size() == 1)
      head_.label_names = rows_.label_names(keys_[roles_.labels.front()]);
    if (roles_.labels.size() > 1)
      for (size_t column : roles_.labels)
        head_.hot_columns.push_back(keys_[column]);
    std::vector<std::string> unread;
    for (size_t column = 0; column < keys_.size(); ++column)
      if (roles_.is_unread(column, keys_[column])) unread.push_back(keys_[column]);
    if (!unread.empty()) notes_.push_back(fmt::format("{}: {}", name_, note_of_unread(unread)));
  }

  /** Turns under a name that says nothing, or that says preferences. */
  [[noreturn]] void refuse_turns(const std::string& key) const {
    Columns asked;
    asked.is_guessed = asked.are_documents = true;
    refuse_meaning(place(), key, /*is_flag=*/false, asked);
    refuse_chat(place(), key);
  }

  /** Keys may stand in some rows only. */
  void check_unread(const nlohmann::ordered_json& object, const std::string& place) const {
    if (!roles_.is_guessed || !roles_.are_documents) return;
    for (const auto& [key, value] : object.items())
      if (key != keys_[roles_.text] && (!roles_.text_pair || key != keys_[*roles_.text_pair]) &&
          has_content(value))
        refuse_meaning(place, key, value.is_boolean(), roles_);
  }

  void join_below(RawRow& row, nlohmann::ordered_json& object) {
    for (const std::string& key : roles_.below) {
      const auto found = object.find(key);
      if (found == object.end() || found->is_null()) continue;
      const std::string below = text_of(object, key);
      n_below_ += !trim(below).empty();
      add_below(row.text, below);
    }
  }

  void note_below() {
    if (n_below_ == 0) return;
    notes_.push_back(fmt::format("{}: {} of {} rows have a text of {} below that of '{}'", name_,
                                 n_below_, n_rows_, fmt::join(roles_.below, " or "),
                                 keys_[roles_.text]));
    n_below_ = 0;
  }

  nlohmann::ordered_json& field(nlohmann::ordered_json& object, const std::string& key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse_row(place(), fmt::format("the field '{}' is missing", key));
    return *found;
  }

  /** Null is an empty text, as tables have it. */
  std::string text_of(nlohmann::ordered_json& object, const std::string& key) const {
    auto& value = field(object, key);
    if (value.is_null()) return {};
    if (is_chat(value)) refuse_chat(place(), key);
    if (!value.is_string()) refuse_row(place(), fmt::format("the field '{}' is not a text", key));
    return std::move(value.get_ref<std::string&>());
  }

  void add_labels(RawRow& row, const nlohmann::ordered_json& value, const std::string& key) const {
    const bool is_one = roles_.labels.size() == 1, is_list = value.is_array() && is_one;
    row.has_list |= is_list;
    row.is_unlabelled = is_one && (value.is_null() || (value.is_string() && !has_content(value)));
    if (value.is_null() && is_one) return;
    for (const auto& item : is_list ? value : nlohmann::ordered_json::array({value})) {
      auto label = label_text(item);
      if (!label)
        refuse_row(row.place,
                   fmt::format("the field '{}' is not a label or a list of labels", key));
      row.labels.push_back(std::move(*label));
    }
  }

  DatasetOptions options_;
  std::string name_;
  ObjectRows rows_;
  JsonRow row_;
  bool is_read_ = false;  // row_ is one that was not given yet
  std::vector<std::string> keys_;
  Columns roles_;
  int64_t n_rows_ = 0, n_below_ = 0;  // given; with a text of a further column
};

/** A text a line. */
class LineRows : public TextRows {
 public:
  explicit LineRows(const DatasetOptions& options)
      : name_(options.path.string()), file_(load_text_file(options)), lines_(file_.text()) {
    note_encoding(notes_, file_.is_latin1(), name_);
  }

  bool next(RawRow& row) override {
    for (std::string_view line; lines_.next(line);) {
      line = trim(line);
      if (line.empty()) continue;
      row.text = file_.take(line, utf8_);
      row.place = fmt::format("{}:{}", name_, lines_.number());
      return true;
    }
    return false;
  }
  double share() const override { return lines_.share(); }

 private:
  std::string name_;
  TextFile file_;
  Lines lines_;
  std::string utf8_;
};

/** The one document that a file is. */
class DocumentRows : public TextRows {
 public:
  explicit DocumentRows(const DatasetOptions& options)
      : name_(options.path.string()), document_(load_text_file(options)) {
    note_encoding(notes_, document_.was_latin1(), name_);
  }

  bool next(RawRow& row) override {
    row.place = name_;
    return !document_.is_blank() && document_.next(row);
  }
  double share() const override { return document_.share(); }

 private:
  std::string name_;
  Document document_;
};

}  // namespace

void refuse_row(std::string_view place, std::string_view what, std::string_view hint) {
  throw Error(Fault::data, "data.read", fmt::format("{}: {}", place, what), hint);
}

std::unique_ptr<TextRows> open_rows(const DatasetOptions& options) {
  switch (options.format) {
    case DatasetFormat::folder:
      return std::make_unique<FolderRows>(options);
    case DatasetFormat::tsv:
    case DatasetFormat::csv:
      return std::make_unique<DelimitedRows>(options, options.format);
    case DatasetFormat::jsonl:
    case DatasetFormat::parquet:
    case DatasetFormat::arrow:
      if (auto chats = open_chats(options)) return chats;
      return std::make_unique<ObjectTexts>(options);
    case DatasetFormat::lines:
      if (options.rows == RowForm::documents) return std::make_unique<DocumentRows>(options);
      return std::make_unique<LineRows>(options);
    case DatasetFormat::conll:
    case DatasetFormat::automatic:  // format_of never says so
      break;
  }
  throw Error(Fault::usage, "data.read",
              fmt::format("'{}' has a word and its tag a line", options.path.string()),
              "task = token-classification trains on such files");
}

}  // namespace ferry
