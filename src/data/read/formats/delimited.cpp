#include "src/data/read/formats/delimited.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.h"

namespace ferry {
namespace {

constexpr size_t kFields_max = 16'384;

}  // namespace

bool DelimitedReader::at_line_end(size_t at) const {
  return at >= text_.size() || text_[at] == '\n' ||
         (text_[at] == '\r' && at + 1 < text_.size() && text_[at + 1] == '\n') ||
         (text_[at] == '\r' && at + 1 == text_.size());
}

bool DelimitedReader::next(DelimitedRow& row) {
  while (at_ < text_.size() && at_line_end(at_)) {
    at_ += text_[at_] == '\r' ? 1 : 0;
    if (at_ < text_.size()) ++at_, ++line_;
  }
  if (at_ >= text_.size()) return false;
  row.line = line_;
  size_t n_fields = 0;
  for (;;) {
    if (n_fields == kFields_max)
      throw Error(
          Fault::data, "data.read",
          fmt::format("{}:{}: the row has more than {} fields", file_, row.line, kFields_max),
          "is it a table, and is its delimiter the right one (dataset_delimiter)?");
    if (n_fields == row.fields.size()) row.fields.emplace_back();
    read_field(row.fields[n_fields++]);
    if (at_line_end(at_)) break;
    ++at_;  // the delimiter
  }
  row.fields.resize(n_fields);
  return true;
}

void DelimitedReader::read_field(std::string& field) {
  field.clear();
  if (quoting_ != Quoting::none && at_ < text_.size() && text_[at_] == '"' && read_quoted(field))
    return;
  size_t end = at_;
  while (!at_line_end(end) && text_[end] != delimiter_)
    ++end;
  field.assign(text_.substr(at_, end - at_));
  at_ = end;
}

/** Reads a field that starts with a quote; false, having moved nothing, when it is malformed and
 * that is allowed. */
bool DelimitedReader::read_quoted(std::string& field) {
  const auto refuse = [&](std::string_view what) {
    throw Error(Fault::data, "data.read", fmt::format("{}:{}: {}", file_, line_, what),
                "double the quotes inside a quoted field, or give dataset_quoting = none where "
                "quotes are plain text");
  };
  size_t at = at_ + 1;
  for (;;) {
    const size_t quote = text_.find('"', at);
    if (quote == text_.npos) {
      if (quoting_ == Quoting::strict) refuse("a quoted field begins here and never ends");
      field.clear();
      return false;
    }
    field.append(text_.substr(at, quote - at));
    at = quote + 1;
    if (at < text_.size() && text_[at] == '"') {
      field.push_back('"');
      ++at;
      continue;
    }
    if (at_line_end(at) || text_[at] == delimiter_) break;
    if (quoting_ == Quoting::strict)
      refuse("text follows the closing quote of a field that begins here");
    field.clear();
    return false;
  }
  const std::string_view quoted = text_.substr(at_, at - at_);
  const auto n_lines = std::count(quoted.begin(), quoted.end(), '\n');
  if (n_lines > 0 && quoting_ == Quoting::lenient) refuse_swallowed_rows(quoted, at);
  line_ += n_lines;
  at_ = at;
  return true;
}

/** Where nobody quotes, a text that begins with a quote and a later one that ends with one look
 * like a field that holds the rows between them. Rows have delimiters in them, or are the whole of
 * their lines. */
void DelimitedReader::refuse_swallowed_rows(std::string_view quoted, size_t end) const {
  const bool is_whole_row = (at_ == 0 || text_[at_ - 1] == '\n') && at_line_end(end);
  if (quoted.find(delimiter_) == quoted.npos && !is_whole_row) return;
  const auto last = line_ + std::count(quoted.begin(), quoted.end(), '\n');
  throw Error(Fault::data, "data.read",
              fmt::format("{}:{}: a quote opens a field here that closes only in line {}: one text "
                          "or several rows?",
                          file_, line_, last),
              "several rows: dataset_quoting = none; one text: dataset_quoting = double");
}

}  // namespace ferry
