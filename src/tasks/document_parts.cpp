#include "src/tasks/document_parts.h"

#include <algorithm>
#include <string_view>

namespace ferry {

bool DocumentParts::next(Example& example) {
  if (!is_open_ && !begin(example)) return false;
  if (!is_open_) return true;
  for (;;) {
    if (const auto cut = find_cut()) {
      give(example, cut->at, /*ends=*/false);
      at_ += cut->at;
      continues_ = cut->continues;
      return true;
    }
    if (is_read_) {
      give(example, text_.size() - at_, /*ends=*/true);
      is_open_ = false;
      return true;
    }
    read_on();
  }
}

/** The next example; one that is to be cut is opened in its place. */
bool DocumentParts::begin(Example& example) {
  if (!from_->next(example)) return false;
  const bool is_short = example.text.size() <= 2 * part_bytes_;
  if (example.text_pair || example.is_chat || (example.part == TextPart::whole && is_short))
    return true;
  is_open_ = is_first_ = true;
  continues_ = false;
  is_read_ = ends_text(example.part);
  text_ = std::move(example.text);
  at_ = 0;
  next_try_ = part_bytes_;
  return true;
}

void DocumentParts::read_on() {
  Example piece;
  is_read_ = !from_->next(piece) || ends_text(piece.part);
  text_.erase(0, at_);
  at_ = 0;
  text_ += piece.text;
}

/** In what was not given yet; none while it is no longer than two parts. */
std::optional<TextCut> DocumentParts::find_cut() {
  const std::string_view rest = std::string_view(text_).substr(at_);
  for (; next_try_ + part_bytes_ < rest.size(); next_try_ += part_bytes_)
    if (const auto cut = find_text_cut(tokenizer_, rest, next_try_, continues_)) {
      next_try_ = part_bytes_;
      return cut;
    }
  return std::nullopt;
}

void DocumentParts::give(Example& example, size_t n_bytes, bool ends) {
  example = {};
  example.text = text_.substr(at_, n_bytes);
  example.part = part_that(is_first_, ends);
  example.continues = continues_;
  is_first_ = false;
}

bool DocumentSide::next(Example& example) {
  while (from_->next(example)) {
    const size_t begin = at_;
    at_ += example.text.size();
    const size_t cut = std::clamp(cut_, begin, at_) - begin;
    const bool ends = is_behind_ ? ends_text(example.part) : at_ >= cut_;
    example.text = is_behind_ ? example.text.substr(cut) : example.text.substr(0, cut);
    if (example.text.empty()) {
      if (!is_behind_) return false;  // all before it is given
      continue;
    }
    example.part = part_that(!is_begun_, ends);
    is_begun_ = true;
    return true;
  }
  return false;
}

std::optional<size_t> find_document_cut(const DatasetReader& reader, double fraction) {
  size_t n_bytes = 0, first = std::string::npos, last = 0;  // of what is no white space
  auto examples = reader.examples();
  int64_t n_examples = 0;
  for (Example example; examples->next(example); n_bytes += example.text.size()) {
    n_examples += begins_text(example.part);
    if (n_examples > 1 || example.text_pair || example.is_chat) return std::nullopt;
    const std::string_view inside = trim(example.text);
    if (inside.empty()) continue;
    const auto begin = n_bytes + static_cast<size_t>(inside.data() - example.text.data());
    first = std::min(first, begin);
    last = begin + inside.size();
  }
  const auto wanted = static_cast<size_t>(static_cast<double>(n_bytes) * (1 - fraction));
  const size_t near = std::clamp(wanted, first, last - 1);
  std::optional<size_t> before, after;  // line ends on either side of it
  examples = reader.examples();
  size_t at = 0;
  for (Example example; !after && examples->next(example); at += example.text.size()) {
    const std::string_view text = example.text;
    for (size_t i = text.find('\n'); i != text.npos && !after; i = text.find('\n', i + 1)) {
      const size_t line_end = at + i;
      if (line_end < first || line_end >= last) continue;
      if (line_end <= near) before = line_end;
      if (line_end >= near) after = line_end;
    }
  }
  const auto distance = [&](size_t line_end) {
    return line_end + 1 > wanted ? line_end + 1 - wanted : wanted - line_end - 1;
  };
  if (!before || (after && distance(*after) < distance(*before))) before = after;
  return before ? std::optional(*before + 1) : std::nullopt;
}

}  // namespace ferry
