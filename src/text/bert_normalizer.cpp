#include "src/text/bert_normalizer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ferry::text {

/** Combining characters since the last starter: the canonical order sorts them by class before they
 * go out. */
class BertNormalizer::Marks {
 public:
  void add(char32_t c) { marks_.emplace_back(combining_class(c), c); }

  template <typename Emit>
  void flush(Emit emit) {
    if (marks_.empty()) return;
    std::stable_sort(marks_.begin(), marks_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& mark : marks_)
      emit(mark.second);
    marks_.clear();
  }

 private:
  std::vector<std::pair<int, char32_t>> marks_;  // (class, character)
};

BertNormalizer::BertNormalizer(BertNormalizerOptions options,
                               std::shared_ptr<const CharTable> table)
    : options_(options), table_(std::move(table)) {
  for (size_t i = 0; i < ascii_.size(); ++i) {
    const auto c = static_cast<char>(i);
    const uint8_t flags = table_->flags(static_cast<char32_t>(i));
    if (options_.clean_text && (flags & CharTable::kRemoved))
      ascii_[i] = kDrop;
    else if (options_.clean_text && (flags & CharTable::kSpace))
      ascii_[i] = ' ';
    else if (options_.lowercase && c >= 'A' && c <= 'Z')
      ascii_[i] = static_cast<char>(c - 'A' + 'a');
    else
      ascii_[i] = c;
  }
}

void BertNormalizer::normalize(std::string_view text, std::string& out) const {
  out.reserve(out.size() + text.size());
  Marks marks;
  auto flush = [&] { marks.flush([&](char32_t c) { append_lowered(c, out); }); };
  size_t i = 0;
  while (i < text.size()) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x80) {
      append(next_code_point(text, i), marks, out);
      continue;
    }
    ++i;
    const char c = ascii_[byte];
    if (c == kDrop && (byte != 0 || options_.clean_text)) continue;
    flush();
    out.push_back(c);
  }
  flush();
}

/** One character beyond ASCII, in Hugging Face's order: clean, set Chinese apart, decompose, strip,
 * lower. */
void BertNormalizer::append(char32_t c, Marks& marks, std::string& out) const {
  const uint8_t flags = table_->flags(c);
  auto flush = [&] { marks.flush([&](char32_t mark) { append_lowered(mark, out); }); };
  if (options_.clean_text) {
    if (flags & CharTable::kRemoved) return;
    if (flags & CharTable::kSpace) {
      flush();
      out.push_back(' ');
      return;
    }
  }
  const bool apart = options_.handle_chinese_chars && (flags & CharTable::kCjk);
  if (apart) {
    flush();
    out.push_back(' ');
  }
  if (options_.strip_accents) {
    Mapping points;
    if (flags & CharTable::kDecomposes)
      points = decomposition(c);
    else
      points = {{c}, 1};
    for (char32_t point : points) {
      const uint8_t point_flags = table_->flags(point);
      if (point_flags & CharTable::kCombines) {
        if (!(point_flags & CharTable::kAccent)) marks.add(point);
        continue;
      }
      flush();
      if (!(point_flags & CharTable::kAccent)) append_lowered(point, out);
    }
  } else {
    append_lowered(c, out);
  }
  if (apart) {
    flush();
    out.push_back(' ');
  }
}

void BertNormalizer::append_lowered(char32_t c, std::string& out) const {
  if (!options_.lowercase || !(table_->flags(c) & CharTable::kHasLower)) {
    append_utf8(out, c);
    return;
  }
  for (char32_t lower : lower_case(c))
    append_utf8(out, lower);
}

}  // namespace ferry::text
