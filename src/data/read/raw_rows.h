#pragma once
// Rows as a source gives them, one after another, before labels mean anything. Private to src/data:
// sources.cpp opens files and folders of texts, row_files.h lays several of them end to end,
// texts.cpp makes examples of rows.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/data/read/reader.h"
#include "src/data/read/row_files.h"

namespace ferry {

struct RawRow {
  std::string text;
  std::optional<std::string> text_pair;
  std::vector<std::string> labels;  // one, unless a list or several columns; the texts of the file
  bool has_list = false;            // JSONL gave a list of labels
  bool is_unlabelled = false;       // its one label is null or empty
  bool is_chat = false;             // its text is a packed chat
  TextPart part = TextPart::whole;
  std::string place;  // "train.tsv:17", or the file alone
};

/** Facts about a source of texts that are known when it is opened. */
struct RowsHead {
  bool has_labels = false;
  std::vector<std::string>
      hot_columns;  // several label columns: labels[i] is the 0 or 1 of hot_columns[i]
  std::vector<std::string> label_names;  // that the file has for its labels, which are their places
  std::string unknown_header;  // the first row, where it may be names of columns that nobody knows
  bool is_folder = false;
  std::vector<std::string> bare_folders;  // sub-directories of a folder that gave no document
};

class TextRows : public RowSource<RawRow> {
 public:
  const RowsHead& head() const { return head_; }

 protected:
  RowsHead head_;
};

/** Opens one file or folder, whose format is known. */
std::unique_ptr<TextRows> open_rows(const DatasetOptions& options);

using TextFiles = RowFiles<TextRows>;

/** Throws Error(data) "place: what - hint". */
[[noreturn]] void refuse_row(std::string_view place,
                             std::string_view what,
                             std::string_view hint = {});

/** A label becomes a name in config.json, in predictions and on terminals: one with control
 * characters is a damaged file or the wrong column, and two that look alike would be two classes.
 */
void check_name(std::string_view place, const std::string& label);

// The readers of each form. `known` is null where the labels make the scheme.

/** Texts, or documents, with labels unless the options ignore them. */
std::unique_ptr<DatasetReader> open_texts(const DatasetFiles& files, const LabelScheme* known);
/** Rows of words, with a tag each unless the options ignore labels. */
std::unique_ptr<DatasetReader> open_words(const DatasetFiles& files, const LabelScheme* known);
/** Rows of a question and its context, with answers unless the options ignore labels. */
std::unique_ptr<DatasetReader> open_questions(const DatasetFiles& files, const LabelScheme* known);
/** Rows of a prompt with a better and a worse answer. */
std::unique_ptr<DatasetReader> open_preferences(const DatasetFiles& files);
/** Rows of a prompt with an answer that is good or bad; each comes with the answer to another
 * prompt, in Example::rejected. */
std::unique_ptr<DatasetReader> open_ratings(const DatasetFiles& files);

}  // namespace ferry
