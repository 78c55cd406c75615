#include "src/data/read/formats/json_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/data/example.h"
#include "src/data/read/raw_rows.h"

namespace ferry {

JsonRows::JsonRows(std::string_view text, std::string_view file, int64_t first_line)
    : text_(text), file_(file), line_(first_line) {
  is_list_ = trim(text_.substr(0, 4096)).starts_with('[');
}

bool JsonRows::next(JsonRow& row) {
  return is_list_ ? next_item(row) : next_line(row);
}

bool JsonRows::next_line(JsonRow& row) {
  while (at_ < text_.size()) {
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    row = {trim(text_.substr(at_, end - at_)), line_++};
    at_ = end + 1;
    if (!row.text.empty()) return true;
  }
  return false;
}

bool JsonRows::next_item(JsonRow& row) {
  const auto refuse = [&](std::string_view what, std::string_view hint = {}) {
    refuse_row(fmt::format("{}:{}", file_, line_), what, hint);
  };
  const auto refuse_end = [&] { refuse("the list ends without its ]", "is the file complete?"); };
  skip_space();
  if (is_first_) ++at_;  // the [
  skip_space();
  if (at_ >= text_.size()) refuse_end();
  if (text_[at_] == ']') {
    ++at_;
    skip_space();
    if (at_ < text_.size())
      refuse("text follows the ] of the list", "expected one list of objects, or an object a line");
    is_list_ = false;  // no line follows either: the end
    return false;
  }
  if (!is_first_) {
    if (text_[at_] != ',') refuse("expected a comma or ] after the item of a list");
    ++at_;
    skip_space();
    if (at_ >= text_.size()) refuse_end();
  }
  is_first_ = false;
  const size_t end = end_of_item();
  row = {trim(text_.substr(at_, end - at_)), line_};
  if (row.text.empty()) refuse("an item of the list is missing");
  line_ += std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                      text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
  at_ = end;
  return true;
}

void JsonRows::skip_space() {
  for (; at_ < text_.size() && trim(text_.substr(at_, 1)).empty(); ++at_)
    line_ += text_[at_] == '\n';
}

/** Where the comma or bracket stands that ends the item, or the end of the text. */
size_t JsonRows::end_of_item() const {
  int64_t depth = 0;
  bool in_string = false;
  for (size_t i = at_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == ']')) {
      return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return text_.size();
}

}  // namespace ferry
