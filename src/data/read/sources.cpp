// The four kinds of source, each from its files to RawRows.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <system_error>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/columns.h"
#include "src/data/read/formats/delimited.h"
#include "src/data/read/formats/delimiter.h"
#include "src/data/read/formats/json_objects.h"
#include "src/data/read/formats/table_file.h"
#include "src/data/read/raw_rows.h"

namespace ferry {
namespace {

namespace stdfs = std::filesystem;

constexpr size_t kSampleRows = 2000;  // looked at to tell a header and guess columns

void note_encoding(RawRows& raw, size_t n_latin1, std::string_view what) {
  if (n_latin1 > 0) raw.notes.push_back(fmt::format("{} not UTF-8, read as Latin-1", what));
}

[[noreturn]] void refuse_path(const stdfs::path& path,
                              std::string_view what,
                              std::error_code code) {
  throw Error(Fault::data, "data.read",
              fmt::format("'{}' {}: {}", path.string(), what, code.message()), "check the path");
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

/** True if the first row may be names of columns: its label stands in no other row, where labels
 * come back. */
bool may_be_header(const RawRows& raw) {
  constexpr size_t kFewRows = 5;  // of so few nothing can be said
  if (raw.rows.size() <= kFewRows || raw.rows.front().labels.size() != 1) return false;
  const std::string& first = raw.rows.front().labels.front();
  std::set<std::string_view> others;
  for (const RawRow& row : std::span(raw.rows).subspan(1))
    others.insert(row.labels.front());
  return !parse_number(first) && !others.contains(first) &&
         2 * others.size() <= raw.rows.size() - 1;
}

}  // namespace

std::string RawRows::place(const RawRow& row) const {
  return row.line ? fmt::format("{}:{}", files[row.file], row.line) : files[row.file];
}

DatasetOptions options_of_file(DatasetOptions options,
                               const stdfs::path& file,
                               DatasetFormat format) {
  options.path = file;
  options.format = format;
  return options;
}

void add_notes(std::vector<std::string>& all,
               const std::string& file,
               const std::vector<std::string>& notes) {
  // A note begins with its file's name.
  for (const std::string& note : notes) {
    const std::string_view end =
        std::string_view(note).substr(note.starts_with(file) ? file.size() : 0);
    const bool is_new = std::ranges::none_of(
        all, [&](const std::string& earlier) { return earlier.ends_with(end); });
    if (is_new) all.push_back(note);
  }
}

void check_same_columns(const std::string& file,
                        const std::string& columns,
                        const std::string& first_file,
                        const std::string& first_columns) {
  if (columns == first_columns) return;
  throw Error(Fault::data, "data.columns",
              fmt::format("the files have different columns: of '{}' {}; of '{}' {}", first_file,
                          first_columns, file, columns),
              "name the columns with text_column, text_pair_column and label_column, or give files "
              "of the same form");
}

void refuse_row(std::string_view place, std::string_view what, std::string_view hint) {
  throw Error(Fault::data, "data.read", fmt::format("{}: {}", place, what), hint);
}

RawRows read_folder(const DatasetOptions& options) {
  RawRows raw;
  raw.has_labels = options.labels != LabelUse::ignored;
  raw.is_folder = true;
  std::string table;  // a file that would rather be the dataset, for the hint
  bool has_deeper = false;
  size_t n_labels = 0, n_other = 0, n_latin1 = 0;
  const auto add = [&](const stdfs::path& document) {
    TextFile file = load_text_file(document, options.encoding);
    n_latin1 += file.was_latin1;
    raw.files.push_back(document.string());
    raw.rows.push_back(
        {.text = std::move(file.text), .file = static_cast<uint32_t>(raw.files.size() - 1)});
  };
  for (const stdfs::path& label : sorted_entries(options.path)) {
    if (!is_folder(label)) {
      if (options.rows == RowForm::documents && label.extension() == ".txt") {
        add(label);
        continue;
      }
      const std::string extension = label.extension().string();
      if (extension == ".tsv" || extension == ".csv" || extension == ".jsonl")
        table = label.string();
      continue;
    }
    const size_t n_before = raw.rows.size();
    for (const stdfs::path& document : sorted_entries(label)) {
      const bool is_deeper = is_folder(document);
      if (document.extension() != ".txt" || is_deeper) {
        has_deeper |= is_deeper;
        ++n_other;
        continue;
      }
      add(document);
      if (raw.has_labels) raw.rows.back().labels = {label_of(label)};
    }
    if (raw.rows.size() > n_before)
      ++n_labels;
    else
      raw.bare_folders.push_back(label.filename().string());
  }
  if (raw.rows.empty()) {
    std::string hint = options.rows == RowForm::documents
                           ? "expected a .txt file per document"
                           : "expected a sub-directory per label with a .txt file per document";
    if (!table.empty())
      hint = fmt::format("did you mean the file '{}'?", table);
    else if (has_deeper)
      hint += "; is the dataset one of its sub-directories?";
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' has no documents", options.path.string()), hint);
  }
  raw.notes.push_back(fmt::format("{}: {} documents{}", options.path.string(), raw.rows.size(),
                                  raw.has_labels ? fmt::format(" under {} labels", n_labels) : ""));
  if (n_other > 0)
    raw.notes.push_back(fmt::format("{} entries that are no .txt files were left out", n_other));
  note_encoding(raw, n_latin1,
                fmt::format("{} of the documents {}", n_latin1, n_latin1 == 1 ? "is" : "are"));
  return raw;
}

RawRows read_delimited(const DatasetOptions& options, DatasetFormat format) {
  RawRows raw;
  raw.files = {options.path.string()};
  const std::string& name = raw.files.front();
  const TextFile file = load_text_file(options.path, options.encoding);
  note_encoding(raw, file.was_latin1, name + " is");
  const Separation split = choose_separation(file.text, name, options, format);
  if (!split.note.empty()) raw.notes.push_back(split.note);
  DelimitedReader reader(std::string_view(file.text).substr(split.n_skipped), name, split.delimiter,
                         split.quoting, split.n_skipped > 0 ? 2 : 1);

  std::vector<DelimitedRow> sample;
  DelimitedRow row;
  for (DelimitedReader ahead = reader; sample.size() < kSampleRows && ahead.next(row);)
    sample.push_back(row);
  if (sample.empty()) throw Error(Fault::data, "data.read", fmt::format("'{}' is empty", name));
  const bool has_header =
      options.header == HeaderRow::present ||
      (options.header == HeaderRow::automatic && looks_like_header(sample, options));
  std::vector<std::string> names;
  const std::vector<std::string> first_fields = sample.front().fields;
  const size_t n_columns = first_fields.size();
  if (has_header) {
    names = first_fields;
    sample.erase(sample.begin());
    reader.next(row);
  }
  const Columns columns = choose_columns(names, sample, options, name, split.delimiter);
  raw.columns = columns.note + (has_header ? "" : ", no header");
  raw.notes.push_back(fmt::format("{}: {}", name, raw.columns));
  raw.has_labels = !columns.labels.empty();
  if (columns.labels.size() > 1)
    for (size_t column : columns.labels)
      raw.hot_columns.push_back(names.empty() ? std::to_string(column) : names[column]);

  while (reader.next(row)) {
    const std::string place = fmt::format("{}:{}", name, row.line);
    if (row.fields.size() != n_columns)
      refuse_row(place,
                 fmt::format("{} field{}, expected {} as in the {}", row.fields.size(),
                             row.fields.size() == 1 ? "" : "s", n_columns,
                             has_header ? "header" : "first row"),
                 row.fields.size() < n_columns
                     ? "a field is missing"
                     : "is a delimiter inside a text that is not quoted?");
    RawRow& out = raw.rows.emplace_back();
    out.line = row.line;
    for (size_t column : columns.labels)
      out.labels.emplace_back(trim(row.fields[column]));
    if (columns.text_pair) out.text_pair = std::move(row.fields[*columns.text_pair]);
    out.text = std::move(row.fields[columns.text]);
  }
  if (!has_header && options.header == HeaderRow::automatic && may_be_header(raw))
    raw.unknown_header = fmt::format("{}", fmt::join(first_fields, ", "));
  return raw;
}

namespace {

/** A label as text; nullopt for null and for what no label is (objects, nested lists). */
std::optional<std::string> label_text(const nlohmann::ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_number()) return value.dump();
  return std::nullopt;
}

}  // namespace

RawRows read_jsonl(const DatasetOptions& options) {
  RawRows raw;
  raw.files = {options.path.string()};
  const std::string& name = raw.files.front();
  const TextFile file = load_objects(options);
  note_encoding(raw, file.was_latin1, name + " is");
  std::optional<Columns> columns;
  std::vector<std::string> keys;  // of the first object; the columns are places in it

  JsonRows rows(file.text, name);
  for (JsonRow row; rows.next(row);) {
    const std::string place = fmt::format("{}:{}", name, row.line);
    nlohmann::ordered_json object = object_of(row, name);
    if (!columns) {
      for (const auto& [key, value] : object.items())
        keys.push_back(key);
      if (keys.empty()) refuse_row(place, "the object is empty");
      columns = choose_columns(keys, {}, options, name, '\0');
      raw.columns = columns->note;
      raw.notes.push_back(fmt::format("{}: {}", name, raw.columns));
      raw.has_labels = !columns->labels.empty();
      if (columns->labels.size() > 1)
        for (size_t column : columns->labels)
          raw.hot_columns.push_back(keys[column]);
    }
    const auto field = [&](size_t column) -> nlohmann::ordered_json& {
      auto found = object.find(keys[column]);
      if (found == object.end() || found->is_null())
        refuse_row(place, fmt::format("the field '{}' is missing", keys[column]));
      return *found;
    };
    const auto text_of = [&](size_t column) -> std::string {
      auto& value = field(column);
      if (!value.is_string())
        refuse_row(place, fmt::format("the field '{}' is not a text", keys[column]));
      return std::move(value.get_ref<std::string&>());
    };
    RawRow& out = raw.rows.emplace_back();
    out.line = row.line;
    out.text = text_of(columns->text);
    if (columns->text_pair) out.text_pair = text_of(*columns->text_pair);
    for (size_t column : columns->labels) {
      const auto& value = field(column);
      const bool is_list = value.is_array() && columns->labels.size() == 1;
      raw.any_list |= is_list;
      for (const auto& item : is_list ? value : nlohmann::ordered_json::array({value})) {
        auto label = label_text(item);
        if (!label)
          refuse_row(place, fmt::format("the field '{}' is not a label or a list of labels",
                                        keys[column]));
        out.labels.push_back(std::move(*label));
      }
    }
  }
  return raw;
}

RawRows read_lines(const DatasetOptions& options) {
  RawRows raw;
  raw.files = {options.path.string()};
  const TextFile file = load_text_file(options.path, options.encoding);
  note_encoding(raw, file.was_latin1, raw.files.front() + " is");
  if (options.rows == RowForm::documents) {
    if (!trim(file.text).empty()) raw.rows.push_back({.text = std::string(file.text)});
    return raw;
  }
  int64_t line_number = 0;
  for (std::string_view rest = file.text; !rest.empty();) {
    const size_t end = rest.find('\n');
    std::string_view line = trim(rest.substr(0, end));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    ++line_number;
    if (!line.empty()) raw.rows.push_back({.text = std::string(line), .line = line_number});
  }
  return raw;
}

}  // namespace ferry
