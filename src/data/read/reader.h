#pragma once
// Reads a labelled (or bare) dataset from a file or directory as people have them. Called by train,
// eval, predict and the app's preview; a path and options come in, examples with checked labels and
// a few sentences on what was taken for what go out. Examples come one after another, so that a
// dataset may be larger than the memory. Every fault of a file is Error(data) with file and line.
//
//   const auto reader = open_dataset(options);  // reads the labels, where they are wanted
//   const auto examples = reader->examples();
//   for (Example example; examples->next(example);) ...

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/data/example.h"
#include "src/data/read/formats/text_file.h"

namespace ferry {

enum class DatasetFormat : uint8_t {
  automatic,  // by extension; a directory is a folder
  folder,     // a sub-directory per label, each *.txt in it a document
  tsv,
  csv,
  jsonl,  // an object a line
  parquet,
  arrow,  // Arrow's files and streams; Feather
  conll,  // a word a line, its tag in the last column; a blank line ends a sentence
  lines,  // a text a line, no labels
};

enum class HeaderRow : uint8_t { automatic, present, absent };

enum class QuotingChoice : uint8_t {
  automatic,  // strict, but lenient where tabs are between the columns
              // (src/data/read/formats/delimited.h)
  strict,
  none,
};

/** The content of a row. */
enum class RowForm : uint8_t {
  texts,        // a text or a pair of texts
  documents,    // the same; of plain text the whole file is one
  words,        // a list of words, with a tag each
  questions,    // a question and a context, with the places of answers in it
  preferences,  // a prompt with two answers, the better one first
  ratings,      // a prompt with an answer that is good or bad
};

enum class LabelUse : uint8_t {
  required,  // training, evaluation
  optional,  // labels where the file has them
  ignored,   // prediction, masked-LM training
};

/** How a task wants rows read. */
struct RowNeed {
  RowForm form = RowForm::texts;
  LabelUse labels = LabelUse::required;
};

/** A column is a name of the header (a key, in JSONL), or a number from 0 where there is no such
 * name. */
struct DatasetOptions {
  std::filesystem::path path;  // may stand for several files: src/data/read/dataset_files.h
  DatasetFormat format = DatasetFormat::automatic;
  std::string text_column;       // "": guessed, see choose_columns in src/data/read/columns.h
  std::string text_pair_column;  // "": guessed together with text_column, else none
  std::vector<std::string>
      label_columns;  // {}: guessed. Several: multi-label, each column 0 or 1 and named a class
  HeaderRow header = HeaderRow::automatic;
  QuotingChoice quoting = QuotingChoice::automatic;
  char delimiter = '\0';  // of CSV and TSV; '\0': see src/data/read/formats/delimiter.h
  std::vector<std::string> label_names;  // of the labels 0, 1, ...; {}: those that the data has
  std::optional<ProblemType> problem;    // nullopt: from the labels
  char label_separator =
      '\0';  // multi-label in one column: "a|b"; '\0': the first of | ; , that occurs
  RowForm rows = RowForm::texts;
  LabelUse labels = LabelUse::required;
  TextEncoding encoding = TextEncoding::utf8;
  bool prompts_are_chats = false;          // rows of a prompt and an answer, too
  bool keeps_empty = false;                // rows without a text are examples, too: of prediction
  bool takes_pipe = false;                 // read once, so that /dev/stdin or <(command) will do
  std::shared_ptr<std::string> pipe_text;  // all that came through the pipe
};

/** The facts that a model knows of its labels: built from the training set, saved with the model,
 * asked of the others. */
struct LabelScheme {
  ProblemType problem = ProblemType::unlabelled;
  LabelMap labels;                // of single_label, multi_label and tags
  std::optional<bool> has_pairs;  // examples are two texts each; nullopt where nobody knows
  bool has_unanswered = false;    // of answers: some questions have none
  bool is_unbalanced = false;     // of single_label: few texts have the rarest label
};

/** Examples one after another. */
class ExampleStream {
 public:
  virtual ~ExampleStream() = default;
  /** False at the end. Overwrites `example`. Error(data) with file and line. */
  virtual bool next(Example& example) = 0;
  /** Bytes of the dataset's files that were read so far. */
  virtual int64_t n_bytes_read() const { return 0; }
  /** For the user; complete at the end. Those of the reader come first. */
  virtual std::vector<std::string> notes() const { return {}; }
};

/** The files of a dataset, which are of one format. */
struct DatasetFiles {
  DatasetOptions options;
  std::vector<std::filesystem::path> files;
  DatasetFormat format = DatasetFormat::automatic;

  /** The options for one of the files. */
  DatasetOptions options_of(size_t file) const;
};

/** A dataset that can be read as often as wanted. */
class DatasetReader {
 public:
  virtual ~DatasetReader() = default;

  const DatasetFiles& files() const { return files_; }
  const LabelScheme& scheme() const { return scheme_; }
  /** For the user: "text column 'sentence', label column 'label'". More may come with the examples.
   */
  const std::vector<std::string>& notes() const { return notes_; }
  /** All examples from the first on: in the order of the files; a folder's by label, then file
   * name. The reader outlives them. */
  virtual std::unique_ptr<ExampleStream> examples() const = 0;
  /** The data sets that it is a mix of; none of one that is no mix. */
  virtual std::vector<const DatasetReader*> parts() const { return {}; }
  /** Changes with the choice of examples that a mix makes. */
  virtual uint64_t choice() const { return 0; }

 protected:
  explicit DatasetReader(DatasetFiles files) : files_(std::move(files)) {}

  DatasetFiles files_;
  LabelScheme scheme_;
  std::vector<std::string> notes_;
};

/** Examples that are in memory; they outlive it. */
std::unique_ptr<ExampleStream> stream_of(std::span<const Example> examples);

/** Bytes of a file, or of all files in a folder; 0 of what has no size. */
int64_t file_bytes(const std::filesystem::path& file);

/** Training data: the label scheme comes from the labels themselves, which are read first.
 * Automatically, lists (or several label columns) are multi-label, numbers of which any has a
 * fraction are a regression, all else is single-label. */
std::unique_ptr<DatasetReader> open_dataset(const DatasetOptions& options);

/** Data beside a scheme that is known; a label outside it is an error that lists the known ones. */
std::unique_ptr<DatasetReader> open_dataset(const DatasetOptions& options,
                                            const LabelScheme& scheme);

/** Several data sets as one, whose examples come one data set after the other. `shares` (a number
 * above 0 for each part, of any sum) are kept: as many examples are taken as there are without
 * taking one twice, drawn by the seed. All parts have the labels of the first. */
std::unique_ptr<DatasetReader> mix_datasets(std::vector<std::unique_ptr<DatasetReader>> parts,
                                            const std::vector<double>& shares,
                                            uint64_t seed);

/** A dataset that is held in memory. */
struct Dataset {
  std::vector<Example> examples;
  LabelScheme scheme;
  std::vector<std::string> notes;
};

/** All of it; documents that came in parts are whole again. */
Dataset read_dataset(const DatasetOptions& options);
Dataset read_dataset(const DatasetOptions& options, const LabelScheme& scheme);
Dataset read_all(const DatasetReader& reader);

/** Option values as written in configurations: "auto", "tsv"; "utf8_or_latin1"; ... nullopt for
 * another text. */
std::optional<DatasetFormat> parse_dataset_format(std::string_view text);
/** The format that the ending of a file's name tells; nullopt for another ending. */
std::optional<DatasetFormat> format_by_ending(const std::filesystem::path& file);
std::optional<TextEncoding> parse_text_encoding(std::string_view text);

}  // namespace ferry
