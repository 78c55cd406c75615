#pragma once
// Rows as a source gives them, before labels mean anything. Private to src/data: the sources
// (sources.cpp) fill it, the label step (labels.cpp) turns it into examples.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/data/read/reader.h"

namespace ferry {

struct RawRow {
  std::string text;
  std::optional<std::string> text_pair;
  std::vector<std::string> labels;  // one, unless a list or several columns; the texts of the file
  uint32_t file = 0;                // place in RawRows::files
  int64_t line = 0;                 // 0: the file as a whole
};

struct RawRows {
  std::string name;  // of the dataset as a whole: its path
  std::vector<std::string> files;
  std::vector<RawRow> rows;
  std::vector<std::string> notes;
  bool has_labels = false;
  bool any_list = false;  // JSONL gave lists of labels
  bool is_folder = false;
  std::string columns;                    // what was taken for what, without the file's name
  std::vector<std::string> bare_folders;  // sub-directories of a folder that gave no document
  std::string unknown_header;  // a file's first row where it may be names of columns that nobody
                               // knows
  size_t unknown_header_row = 0;
  std::vector<std::string>
      hot_columns;  // several label columns: labels[i] is the 0 or 1 of hot_columns[i]

  /** "train.tsv:17", or the file alone. */
  std::string place(const RawRow& row) const;
};

/** Throws Error(data) "place: what - hint". */
[[noreturn]] void refuse_row(std::string_view place,
                             std::string_view what,
                             std::string_view hint = {});

/** A label becomes a name in config.json, in predictions and on terminals: one with control
 * characters is a damaged file or the wrong column, and two that look alike would be two classes.
 */
void check_name(std::string_view place, const std::string& label);

/** The options of a dataset for one of its files, whose format is known. */
DatasetOptions options_of_file(DatasetOptions options,
                               const std::filesystem::path& file,
                               DatasetFormat format);

RawRows read_folder(const DatasetOptions& options);
RawRows read_delimited(const DatasetOptions& options, DatasetFormat format);
RawRows read_jsonl(const DatasetOptions& options);
RawRows read_lines(const DatasetOptions& options);

/** Adds the notes of a file to those of others before it. What they say of every file is said once,
 * of the first. */
void add_notes(std::vector<std::string>& all,
               const std::string& file,
               const std::vector<std::string>& notes);

/** Refuses a file whose columns are taken for something else than those of the first file. */
void check_same_columns(const std::string& file,
                        const std::string& columns,
                        const std::string& first_file,
                        const std::string& first_columns);

/** The last step of read_dataset: problem type, label map (unless the scheme is known), labels as
 * ids or values. */
Dataset label_examples(RawRows raw, const DatasetOptions& options, const LabelScheme* known);

/** Rows of words, with a tag each unless the options ignore labels. */
Dataset read_words(const DatasetOptions& options,
                   const std::vector<std::filesystem::path>& files,
                   DatasetFormat format,
                   const LabelScheme* known);
/** Rows of a question and its context, with answers unless the options ignore labels. */
Dataset read_questions(const DatasetOptions& options,
                       const std::vector<std::filesystem::path>& files,
                       DatasetFormat format,
                       const LabelScheme* known);

}  // namespace ferry
