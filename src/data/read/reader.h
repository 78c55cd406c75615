#pragma once
// Reads a labelled (or bare) dataset from a file or directory as people have them. Called by train,
// eval, predict and the app's preview; a path and options come in, examples with checked labels and
// a few sentences on what was taken for what go out. Every fault of a file is Error(data) with file
// and line.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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
  texts,      // a text or a pair of texts
  documents,  // the same; of plain text the whole file is one
  words,      // a list of words, with a tag each
  questions,  // a question and a context, with the places of answers in it
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
  std::optional<ProblemType> problem;  // nullopt: from the labels
  char label_separator =
      '\0';  // multi-label in one column: "a|b"; '\0': the first of | ; , that occurs
  RowForm rows = RowForm::texts;
  LabelUse labels = LabelUse::required;
  TextEncoding encoding = TextEncoding::utf8;
  bool takes_pipe = false;  // read once, so that /dev/stdin or <(command) will do
};

/** The facts that a model knows of its labels: built from the training set, saved with the model,
 * asked of the others. */
struct LabelScheme {
  ProblemType problem = ProblemType::unlabelled;
  LabelMap labels;                // of single_label, multi_label and tags
  std::optional<bool> has_pairs;  // examples are two texts each; nullopt where nobody knows
  bool has_unanswered = false;    // of answers: some questions have none
};

struct Dataset {
  std::vector<Example> examples;  // in the order of the files; a folder's by label, then file name
  LabelScheme scheme;
  std::vector<std::string> notes;  // for the user: "text column 'sentence', label column 'label'"
};

/** Training data: the label scheme comes from the labels themselves. Automatically, lists (or
 * several label columns) are multi-label, numbers of which any has a fraction are a regression, all
 * else is single-label. */
Dataset read_dataset(const DatasetOptions& options);

/** Data beside a scheme that is known; a label outside it is an error that lists the known ones. */
Dataset read_dataset(const DatasetOptions& options, const LabelScheme& scheme);

/** Option values as written in configurations: "auto", "tsv"; "utf8_or_latin1"; ... nullopt for
 * another text. */
std::optional<DatasetFormat> parse_dataset_format(std::string_view text);
std::optional<TextEncoding> parse_text_encoding(std::string_view text);

}  // namespace ferry
