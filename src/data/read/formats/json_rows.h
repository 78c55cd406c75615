#pragma once
// The rows of a JSONL text, or of a JSON list of objects, as texts. Private to src/data.

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace ferry {

struct JsonRow {
  std::string_view text;  // of one value, without space around it
  int64_t line = 0;       // from 1, where it begins
};

/** Finds where each row begins and ends, and leaves reading it to others. A text that begins with
 * [ is one list whose items are the rows, as the hub and LLaMA-Factory have them; else each line
 * that is not blank is a row. `text` and `file`, which names it in errors, outlive the object. */
class JsonRows {
 public:
  JsonRows(std::string_view text, std::string_view file, int64_t first_line = 1);

  /** False at the end. Error(data) with file:line where a list is cut short or is not a list. */
  bool next(JsonRow& row);
  /** The share of the text that was given so far, from 0 to 1. */
  double share() const {
    return text_.empty() ? 1
                         : static_cast<double>(std::min(at_, text_.size())) /
                               static_cast<double>(text_.size());
  }

 private:
  bool next_line(JsonRow& row);
  bool next_item(JsonRow& row);
  void skip_space();
  size_t end_of_item() const;

  std::string_view text_, file_;
  size_t at_ = 0;
  int64_t line_;
  bool is_list_ = false, is_first_ = true;
};

}  // namespace ferry
