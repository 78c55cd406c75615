#pragma once
// The rows of a file of objects, one after another: JSONL, a JSON list, Parquet, Arrow. Private to
// src/data: the sources of texts, words and questions stand on it.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/data/read/formats/json_rows.h"
#include "src/data/read/formats/table_file.h"
#include "src/data/read/formats/text_file.h"
#include "src/data/read/reader.h"

namespace ferry {

/** Files whose rows are objects: JSONL, Parquet and Arrow. */
bool has_objects(DatasetFormat format);

class ObjectRows {
 public:
  /** Errors as load_text_file() and TableFile. */
  explicit ObjectRows(const DatasetOptions& options);
  ObjectRows(const ObjectRows&) = delete;
  ObjectRows& operator=(const ObjectRows&) = delete;

  /** False at the end. The row's text is UTF-8 and valid until the next call. */
  bool next(JsonRow& row);
  /** The file as a text; null for a table. */
  const TextFile* text_file() const { return text_ ? &*text_ : nullptr; }
  /** The names of the labels 0, 1, ... of a column (class_labels.h); empty where nothing names
   * them. */
  std::vector<std::string> label_names(const std::string& column) const;
  bool was_latin1() const { return text_ && text_->is_latin1(); }
  /** The share of the file that was given so far, from 0 to 1. */
  double share() const;

 private:
  std::string name_;
  std::optional<TextFile> text_;  // one of these two
  std::unique_ptr<TableFile> table_;
  std::optional<JsonRows> rows_;  // of the text, or of the table's last piece
  int64_t n_rows_ = 0;            // given so far
  std::string utf8_;
};

}  // namespace ferry
