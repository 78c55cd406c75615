#include "src/data/read/reader.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/dataset_files.h"
#include "src/data/read/formats/table_file.h"
#include "src/data/read/raw_rows.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

template <typename Value>
struct Named {
  std::string_view name;
  Value value;
};

constexpr std::array kFormats = {
    Named<DatasetFormat>{"auto", DatasetFormat::automatic},
    Named<DatasetFormat>{"folder", DatasetFormat::folder},
    Named<DatasetFormat>{"tsv", DatasetFormat::tsv},
    Named<DatasetFormat>{"csv", DatasetFormat::csv},
    Named<DatasetFormat>{"jsonl", DatasetFormat::jsonl},
    Named<DatasetFormat>{"parquet", DatasetFormat::parquet},
    Named<DatasetFormat>{"arrow", DatasetFormat::arrow},
    Named<DatasetFormat>{"conll", DatasetFormat::conll},
    Named<DatasetFormat>{"lines", DatasetFormat::lines},
};
constexpr std::array kExtensions = {
    Named<DatasetFormat>{".tsv", DatasetFormat::tsv},
    Named<DatasetFormat>{".tab", DatasetFormat::tsv},
    Named<DatasetFormat>{".csv", DatasetFormat::csv},
    Named<DatasetFormat>{".jsonl", DatasetFormat::jsonl},
    Named<DatasetFormat>{".ndjson", DatasetFormat::jsonl},
    Named<DatasetFormat>{".json", DatasetFormat::jsonl},
    Named<DatasetFormat>{".parquet", DatasetFormat::parquet},
    Named<DatasetFormat>{".arrow", DatasetFormat::arrow},
    Named<DatasetFormat>{".feather", DatasetFormat::arrow},
    Named<DatasetFormat>{".conll", DatasetFormat::conll},
    Named<DatasetFormat>{".bio", DatasetFormat::conll},
    Named<DatasetFormat>{".iob", DatasetFormat::conll},
    Named<DatasetFormat>{".iob2", DatasetFormat::conll},
    Named<DatasetFormat>{".txt", DatasetFormat::lines},
};
constexpr std::array kEncodings = {
    Named<TextEncoding>{"utf8", TextEncoding::utf8},
    Named<TextEncoding>{"latin1", TextEncoding::latin1},
    Named<TextEncoding>{"utf8_or_latin1", TextEncoding::utf8_or_latin1},
};

template <typename Table>
auto value_of(const Table& table, std::string_view name)
    -> std::optional<decltype(table[0].value)> {
  for (const auto& row : table)
    if (row.name == name) return row.value;
  return std::nullopt;
}

/** Kinds of files that people have and that are not read, with the way out: {0} is the path. */
struct Unread {
  std::string_view extension, what, hint;
};
constexpr std::string_view kSaveAsCsv = "save it as CSV (UTF-8) in the program that made it";
constexpr std::array kUnread = {
    Unread{".xlsx", "a spreadsheet", kSaveAsCsv},
    Unread{".xls", "a spreadsheet", kSaveAsCsv},
    Unread{".ods", "a spreadsheet", kSaveAsCsv},
    Unread{".gz", "compressed", "unpack it: gunzip -k '{0}'"},
    Unread{".bz2", "compressed", "unpack it: bunzip2 -k '{0}'"},
    Unread{".xz", "compressed", "unpack it: unxz -k '{0}'"},
    Unread{".zst", "compressed", "unpack it: unzstd '{0}'"},
    Unread{".zip", "compressed", "unpack it: unzip '{0}'"},
};

void refuse_unread(const std::filesystem::path& path) {
  for (const Unread& kind : kUnread) {
    if (path.extension() != kind.extension) continue;
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' is {}, which is not read", path.string(), kind.what),
                fmt::format(fmt::runtime(kind.hint), path.string()));
  }
}

/** The format of one file or folder. */
DatasetFormat format_of(const DatasetOptions& options) {
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(options.path, code);
  if (status.type() == std::filesystem::file_type::none)  // a loop of links, no permission
    throw Error(
        Fault::data, "data.read",
        fmt::format("dataset '{}' cannot be reached: {}", options.path.string(), code.message()),
        "check the path");
  if (!std::filesystem::exists(status))
    throw Error(Fault::data, "data.read",
                fmt::format("dataset '{}' does not exist", options.path.string()),
                "check the path");
  const bool is_directory = std::filesystem::is_directory(status);
  if (descriptor_of(options.path) && !options.takes_pipe)
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' can be read once, and the data of a run is read again, for "
                            "example when it resumes",
                            options.path.string()),
                "write it to a file, and give that");
  if (options.format != DatasetFormat::automatic) {
    if (is_directory != (options.format == DatasetFormat::folder))
      throw Error(Fault::usage, "data.read",
                  fmt::format("dataset '{}' is a {}, which does not go with the format asked for",
                              options.path.string(), is_directory ? "directory" : "file"),
                  "leave dataset_format at auto");
    return options.format;
  }
  if (is_directory) return DatasetFormat::folder;
  if (auto format = value_of(kExtensions, options.path.extension().string())) return *format;
  refuse_unread(options.path);
  throw Error(Fault::usage, "data.read",
              fmt::format("the format of '{}' does not show in its name", options.path.string()),
              "say which it is with dataset_format: tsv, csv, jsonl, parquet, arrow or conll");
}

/** The one format of all files. */
DatasetFormat format_of_files(const DatasetOptions& options,
                              const std::vector<std::filesystem::path>& files) {
  const auto format_of_file = [&](const std::filesystem::path& file) {
    return format_of(options_of_file(options, file, options.format));
  };
  const DatasetFormat format = format_of_file(files.front());
  if (files.size() == 1) return format;
  for (const std::filesystem::path& file : files) {
    const DatasetFormat other = format_of_file(file);
    if (other == DatasetFormat::folder)
      throw Error(Fault::data, "data.read",
                  fmt::format("'{}' is a directory among the files of '{}'", file.string(),
                              options.path.string()),
                  "a folder is a dataset alone; or give a pattern for the files in it");
    if (other != format)
      throw Error(
          Fault::data, "data.read",
          fmt::format("'{}' and '{}' are of two formats", files.front().string(), file.string()),
          "give files of one format");
  }
  return format;
}

/** Rows of one file or folder. */
RawRows read_raw(const DatasetOptions& options) {
  switch (options.format) {
    case DatasetFormat::automatic:
      break;  // format_of never says so
    case DatasetFormat::folder:
      return read_folder(options);
    case DatasetFormat::tsv:
    case DatasetFormat::csv:
      return read_delimited(options, options.format);
    case DatasetFormat::jsonl:
    case DatasetFormat::parquet:
    case DatasetFormat::arrow:
      return read_jsonl(options);
    case DatasetFormat::conll:
      throw Error(Fault::usage, "data.read",
                  fmt::format("'{}' has a word and its tag a line", options.path.string()),
                  "task = token-classification trains on such files");
    case DatasetFormat::lines:
      return read_lines(options);
  }
  return {};
}

/** Adds the rows of a file to those of files before it. */
void append(RawRows& all, RawRows one) {
  const std::string file = one.files.front();
  check_same_columns(file, one.columns, all.files.front(), all.columns);
  const auto n_files = static_cast<uint32_t>(all.files.size());
  if (all.unknown_header.empty() && !one.unknown_header.empty()) {
    all.unknown_header = one.unknown_header;
    all.unknown_header_row = all.rows.size();
  }
  all.files.insert(all.files.end(), one.files.begin(), one.files.end());
  all.any_list |= one.any_list;
  add_notes(all.notes, file, one.notes);
  for (RawRow& row : one.rows) {
    row.file += n_files;
    all.rows.push_back(std::move(row));
  }
}

RawRows read_files(const DatasetOptions& options,
                   const std::vector<std::filesystem::path>& files,
                   DatasetFormat format) {
  RawRows all;
  for (const std::filesystem::path& file : files) {
    RawRows one = read_raw(options_of_file(options, file, format));
    if (one.rows.empty())
      throw Error(
          Fault::data, "data.read", fmt::format("'{}' has no examples", file.string()),
          files.size() == 1 ? "is it the right file?" : "is it complete? else leave it out");
    if (all.files.empty())
      all = std::move(one);
    else
      append(all, std::move(one));
  }
  all.name = options.path.string();
  return all;
}

Dataset read_rows(const DatasetOptions& options,
                  const std::vector<std::filesystem::path>& files,
                  const LabelScheme* known) {
  const DatasetFormat format = format_of_files(options, files);
  if (format == DatasetFormat::lines && options.labels == LabelUse::required)
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' is plain text, which has no labels", options.path.string()),
                options.rows == RowForm::texts
                    ? "use a TSV, CSV or JSONL file, or a folder per label"
                    : "use a JSONL file");
  const bool is_table = format == DatasetFormat::tsv || format == DatasetFormat::csv;
  if (options.rows == RowForm::words) return read_words(options, files, format, known);
  if (options.rows == RowForm::questions && has_objects(format))
    return read_questions(options, files, format, known);
  if (options.rows == RowForm::questions && (!is_table || options.labels != LabelUse::ignored))
    throw Error(
        Fault::data, "data.read",
        fmt::format("'{}' is no file of questions with answers", options.path.string()),
        "they are read from .jsonl, .parquet and .arrow files, and from .json files as SQuAD's");
  return label_examples(read_files(options, files, format), options, known);
}

Dataset read(const DatasetOptions& options, const LabelScheme* known) {
  const auto files = dataset_files(options.path.string());
  Dataset dataset = read_rows(options, files, known);
  if (files.size() > 1)
    dataset.notes.insert(
        dataset.notes.begin(),
        escaped(fmt::format("{}: {} files, '{}' to '{}'", options.path.string(), files.size(),
                            files.front().string(), files.back().string())));
  return dataset;
}

}  // namespace

Dataset read_dataset(const DatasetOptions& options) {
  return read(options, nullptr);
}

Dataset read_dataset(const DatasetOptions& options, const LabelScheme& scheme) {
  return read(options, &scheme);
}

std::optional<DatasetFormat> parse_dataset_format(std::string_view text) {
  return value_of(kFormats, text);
}
std::optional<TextEncoding> parse_text_encoding(std::string_view text) {
  return value_of(kEncodings, text);
}

}  // namespace ferry
