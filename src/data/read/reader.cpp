#include "src/data/read/reader.h"

#include <fmt/format.h>

#include <array>
#include <system_error>

#include "src/base/error.h"
#include "src/base/utf8.h"
#include "src/data/read/dataset_files.h"
#include "src/data/read/object_rows.h"
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
    Named<DatasetFormat>{"txt", DatasetFormat::lines},
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
    Named<DatasetFormat>{".conllu", DatasetFormat::conll},
    Named<DatasetFormat>{".bio", DatasetFormat::conll},
    Named<DatasetFormat>{".iob", DatasetFormat::conll},
    Named<DatasetFormat>{".iob2", DatasetFormat::conll},
    Named<DatasetFormat>{".txt", DatasetFormat::lines},
    Named<DatasetFormat>{".text", DatasetFormat::lines},
    Named<DatasetFormat>{".md", DatasetFormat::lines},
    Named<DatasetFormat>{".markdown", DatasetFormat::lines},
    Named<DatasetFormat>{".rst", DatasetFormat::lines},
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
constexpr std::string_view kSaveAsText = "save it as plain text (UTF-8, .txt)";
constexpr std::array kUnread = {
    Unread{".docx", "a document of a word processor", kSaveAsText},
    Unread{".doc", "a document of a word processor", kSaveAsText},
    Unread{".odt", "a document of a word processor", kSaveAsText},
    Unread{".rtf", "a document of a word processor", kSaveAsText},
    Unread{".pdf", "a PDF", "take its text out: pdftotext '{0}'"},
    Unread{".epub", "an e-book", kSaveAsText},
    Unread{".html", "a web page", kSaveAsText},
    Unread{".htm", "a web page", kSaveAsText},
    Unread{".yaml", "a file of settings", "take it with --config '{0}'"},
    Unread{".yml", "a file of settings", "take it with --config '{0}'"},
    Unread{".toml", "a file of settings", "take it with --config '{0}'"},
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
  if (auto format = format_by_ending(options.path)) return *format;
  refuse_unread(options.path);
  throw Error(Fault::usage, "data.read",
              fmt::format("the format of '{}' does not show in its name", options.path.string()),
              "say which it is with dataset_format: txt, tsv, csv, jsonl, parquet, arrow or conll");
}

/** The one format of all files. */
DatasetFormat format_of_files(const DatasetOptions& options,
                              const std::vector<std::filesystem::path>& files) {
  const auto format_of_file = [&](const std::filesystem::path& file) {
    DatasetOptions of_file = options;
    of_file.path = file;
    return format_of(of_file);
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

std::unique_ptr<DatasetReader> open_form(const DatasetFiles& files, const LabelScheme* known) {
  const DatasetOptions& options = files.options;
  if (files.format == DatasetFormat::lines && options.labels == LabelUse::required)
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' is plain text, which has no labels", options.path.string()),
                options.rows == RowForm::texts
                    ? "use a TSV, CSV or JSONL file, or a folder per label; a language model "
                      "learns it with --task causal-lm (a decoder) or --task mlm (an encoder)"
                    : "use a JSONL file");
  const bool is_table = files.format == DatasetFormat::tsv || files.format == DatasetFormat::csv;
  if (options.rows == RowForm::words) return open_words(files, known);
  const bool are_rated = options.rows == RowForm::ratings;
  if (are_rated || options.rows == RowForm::preferences) {
    if (has_objects(files.format)) return are_rated ? open_ratings(files) : open_preferences(files);
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' is no file of answers that are compared", options.path.string()),
                "they are read from .jsonl, .json, .parquet and .arrow files whose rows have "
                "prompt, chosen and rejected, or prompt, completion and label (KTO)");
  }
  if (options.rows == RowForm::questions && has_objects(files.format))
    return open_questions(files, known);
  if (options.rows == RowForm::questions && (!is_table || options.labels != LabelUse::ignored))
    throw Error(
        Fault::data, "data.read",
        fmt::format("'{}' is no file of questions with answers", options.path.string()),
        "they are read from .jsonl, .parquet and .arrow files, and from .json files as SQuAD's");
  return open_texts(files, known);
}

std::unique_ptr<DatasetReader> open(const DatasetOptions& options, const LabelScheme* known) {
  DatasetFiles files = {.options = options, .files = dataset_files(options.path.string())};
  files.format = format_of_files(options, files.files);
  if (const auto descriptor = descriptor_of(options.path))
    files.options.pipe_text = std::make_shared<std::string>(
        read_stream(*descriptor, fmt::format("'{}'", options.path.string())));
  return open_form(files, known);
}

class HeldExamples : public ExampleStream {
 public:
  explicit HeldExamples(std::span<const Example> examples) : examples_(examples) {}
  bool next(Example& example) override {
    if (examples_.empty()) return false;
    example = examples_.front();
    examples_ = examples_.subspan(1);
    return true;
  }

 private:
  std::span<const Example> examples_;
};

/** Joins the next part of a document to it; a whole example or a first part stands alone. */
void add_part(std::vector<Example>& all, Example part) {
  if (begins_text(part.part)) {
    all.push_back(std::move(part));
    all.back().part = TextPart::whole;
  } else {
    all.back().text += part.text;
  }
}

}  // namespace

std::unique_ptr<DatasetReader> open_dataset(const DatasetOptions& options) {
  return open(options, nullptr);
}

std::unique_ptr<DatasetReader> open_dataset(const DatasetOptions& options,
                                            const LabelScheme& scheme) {
  return open(options, &scheme);
}

std::unique_ptr<ExampleStream> stream_of(std::span<const Example> examples) {
  return std::make_unique<HeldExamples>(examples);
}

Dataset read_all(const DatasetReader& reader) {
  Dataset dataset;
  const auto examples = reader.examples();
  for (Example example; examples->next(example);)
    add_part(dataset.examples, std::move(example));
  dataset.scheme = reader.scheme();
  dataset.notes = examples->notes();
  return dataset;
}

Dataset read_dataset(const DatasetOptions& options) {
  return read_all(*open_dataset(options));
}

Dataset read_dataset(const DatasetOptions& options, const LabelScheme& scheme) {
  return read_all(*open_dataset(options, scheme));
}

int64_t file_bytes(const std::filesystem::path& file) {
  std::error_code code;
  if (!std::filesystem::is_directory(file, code)) {
    const auto n_bytes = std::filesystem::file_size(file, code);
    return code ? 0 : static_cast<int64_t>(n_bytes);
  }
  int64_t n_bytes = 0;
  for (std::filesystem::recursive_directory_iterator entry(file, code), end; !code && entry != end;
       entry.increment(code)) {
    std::error_code no_file;
    const auto size = entry->file_size(no_file);
    n_bytes += no_file ? 0 : static_cast<int64_t>(size);
  }
  return n_bytes;
}

std::optional<DatasetFormat> format_by_ending(const std::filesystem::path& file) {
  return value_of(kExtensions, file.extension().string());
}

std::optional<DatasetFormat> parse_dataset_format(std::string_view text) {
  return value_of(kFormats, text);
}
std::optional<TextEncoding> parse_text_encoding(std::string_view text) {
  return value_of(kEncodings, text);
}

}  // namespace ferry
