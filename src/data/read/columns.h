#pragma once
// Which column is the text, which the label. Private to src/data. Names come from a header or from
// JSON keys; a file without a header has numbers from 0.

#include <optional>
#include <string>
#include <vector>

#include "src/data/read/formats/delimited.h"
#include "src/data/read/reader.h"

namespace ferry {

struct Columns {
  size_t text = 0;
  std::vector<std::string> below;  // names: their texts follow the text, a line each, where a row
                                   // has one
  bool is_guessed = false;         // nobody asked for the text column by name
  bool are_documents = false;      // for language models
  std::optional<size_t> text_pair;
  std::vector<size_t> labels;  // empty: none
  std::string note;            // what was chosen and why, for the user; without the file

  /** The column is neither read nor joined to one that is. */
  bool is_unread(size_t column, const std::string& name) const;
};

/** A row has something in this column, which is not read. Throws Error(data) where that changes
 * what its text means: the better of two answers, a system prompt, earlier turns of a chat. The
 * message says what to do. `is_flag`: it is true or false. */
void refuse_meaning(std::string_view place,
                    std::string_view name,
                    bool is_flag,
                    const Columns& columns);

/** "not read: 'id', 'source'": these columns, at most twelve; empty for none. */
std::string note_of_unread(const std::vector<std::string>& names);

/** Throws Error(data): the column holds a chat where a text is wanted. */
[[noreturn]] void refuse_chat(std::string_view place, std::string_view name);

/** Joins a further text to a row's, on a line below it. */
void add_below(std::string& text, std::string_view below);

/** By the options; else by well-known names (sentence1 with sentence2, text, label, ...; for
 * documents prompt with completion, instruction and input with output, ...); else, of two columns,
 * the one with fewer different values is the label, and of one, it is the text. Error(usage) when a
 * column asked for is not there or is asked for twice, Error(data) when nothing tells or the lines
 * hold another delimiter. names: of the columns, empty without a header. sample: the first rows,
 * may be empty. delimiter: that the rows were split at, '\0' for JSON. */
Columns choose_columns(const std::vector<std::string>& names,
                       const std::vector<DelimitedRow>& sample,
                       const DatasetOptions& options,
                       std::string_view file,
                       char delimiter);

/** True if the first of the sample rows is a header: it holds a column asked for by name, or a
 * well-known name, or a word above a column of numbers. */
bool looks_like_header(const std::vector<DelimitedRow>& sample, const DatasetOptions& options);

}  // namespace ferry
