#include "src/text/unicode/unicode.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace ferry::text {
namespace {

struct Range {
  char32_t first, last;
};
struct CombiningRange {
  char32_t first, last;
  uint8_t combining_class;
};
struct Expansion {
  char32_t from;
  char32_t to[4];  // ended by 0 if shorter
};
struct Composition {
  char32_t first, second, composed;
};
struct Slice {
  char32_t from;
  int begin, size;  // in kCompatiblePoints
};

#include "src/text/unicode/unicode_tables.inc"

// The ranges that BERT's own code calls Chinese, but that Hugging Face begins Extension E at
// U+2B920, not at U+2B820.
constexpr Range kChinese[] = {
    {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},   {0x20000, 0x2A6DF},
    {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F},
};

constexpr char32_t kHangulFirst = 0xAC00, kHangulLast = 0xD7A3;
constexpr char32_t kLeadingFirst = 0x1100, kVowelFirst = 0x1161, kTrailingBase = 0x11A7;

/** The range that holds c, or null. */
template <typename R, size_t N>
const R* find_range(const R (&ranges)[N], char32_t c) {
  const R* range = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                    [](char32_t value, const R& r) { return value < r.first; });
  if (range == std::begin(ranges)) return nullptr;
  --range;
  return c <= range->last ? range : nullptr;
}

template <size_t N>
Mapping find_mapping(const Expansion (&expansions)[N], char32_t c) {
  const Expansion* found =
      std::lower_bound(std::begin(expansions), std::end(expansions), c,
                       [](const Expansion& e, char32_t value) { return e.from < value; });
  Mapping mapping;
  if (found == std::end(expansions) || found->from != c) return mapping;
  while (mapping.size < 4 && found->to[mapping.size] != 0) {
    mapping.points[static_cast<size_t>(mapping.size)] = found->to[mapping.size];
    ++mapping.size;
  }
  return mapping;
}

}  // namespace

CharTable::CharTable() : pages_(256, 0) {
  for (const Range& r : kCleaned)
    set(r.first, r.last, kRemoved);
  for (const Range& r : kWhitespace)
    set(r.first, r.last, kSpace);
  for (const Range& r : kPunctuationMarks)
    set(r.first, r.last, kPunctuation);
  for (const Range& r : kAccents)
    set(r.first, r.last, kAccent);
  for (const Range& r : kChinese)
    set(r.first, r.last, kCjk);
  for (const CombiningRange& r : kCombining)
    set(r.first, r.last, kCombines);
  for (const Expansion& e : kDecompositions)
    set(e.from, e.from, kDecomposes);
  for (const Expansion& e : kLower)
    set(e.from, e.from, kHasLower);
  set(kHangulFirst, kHangulLast, kDecomposes);
}

void CharTable::set(char32_t first, char32_t last, Flag flag) {
  for (char32_t c = first; c <= last; ++c) {
    uint32_t& page = page_of_[c >> 8];
    if (page == 0) {
      page = static_cast<uint32_t>(pages_.size());
      pages_.resize(pages_.size() + 256, 0);
    }
    pages_[page + (c & 0xFF)] |= flag;
  }
}

template <typename Value>
RunTable<Value>::RunTable(std::span<const uint32_t> runs) {
  std::map<std::vector<Value>, uint32_t> seen;  // most pages are of one value
  std::vector<Value> page;
  size_t run = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    while (run + 1 < runs.size() && runs[run + 1] >> 5 <= c)
      ++run;
    page.push_back(static_cast<Value>(runs[run] & 31));
    if (page.size() < 256) continue;
    const auto [found, is_new] = seen.emplace(page, static_cast<uint32_t>(pages_.size()));
    if (is_new) pages_.insert(pages_.end(), page.begin(), page.end());
    page_of_[c >> 8] = found->second;
    page.clear();
  }
}

template class RunTable<Category>;
template class RunTable<GraphemeClass>;

CategoryTable::CategoryTable() : RunTable(kCategoryRuns) {}
GraphemeTable::GraphemeTable() : RunTable(kGraphemeRuns) {}

const CategoryTable& CategoryTable::get() {
  static const CategoryTable table;
  return table;
}

const GraphemeTable& GraphemeTable::get() {
  static const GraphemeTable table;
  return table;
}

std::u32string compatibility_decomposition(char32_t c) {
  const Slice* found =
      std::lower_bound(std::begin(kCompatible), std::end(kCompatible), c,
                       [](const Slice& slice, char32_t value) { return slice.from < value; });
  if (found != std::end(kCompatible) && found->from == c)
    return {kCompatiblePoints + found->begin, static_cast<size_t>(found->size)};
  const Mapping mapping = decomposition(c);
  return {mapping.begin(), mapping.end()};
}

char32_t composition(char32_t first, char32_t second) {
  if (first >= kLeadingFirst && first < kLeadingFirst + 19 && second >= kVowelFirst &&
      second < kVowelFirst + 21)
    return kHangulFirst + ((first - kLeadingFirst) * 21 + (second - kVowelFirst)) * 28;
  if (first >= kHangulFirst && first <= kHangulLast && (first - kHangulFirst) % 28 == 0 &&
      second > kTrailingBase && second < kTrailingBase + 28)
    return first + (second - kTrailingBase);
  const Composition* found =
      std::lower_bound(std::begin(kCompositions), std::end(kCompositions), std::pair{first, second},
                       [](const Composition& pair, const auto& value) {
                         return std::pair{pair.first, pair.second} < value;
                       });
  const bool composes =
      found != std::end(kCompositions) && found->first == first && found->second == second;
  return composes ? found->composed : 0;
}

std::vector<char32_t> composing_seconds() {
  std::vector<char32_t> seconds;
  for (const Composition& pair : kCompositions)
    seconds.push_back(pair.second);
  for (char32_t i = 0; i < 21; ++i)
    seconds.push_back(kVowelFirst + i);
  for (char32_t i = 1; i < 28; ++i)
    seconds.push_back(kTrailingBase + i);
  return seconds;
}

Mapping decomposition(char32_t c) {
  if (c < kHangulFirst || c > kHangulLast) return find_mapping(kDecompositions, c);
  const char32_t index = c - kHangulFirst;  // (leading 19, vowel 21, trailing 28)
  Mapping jamo;
  jamo.points = {kLeadingFirst + index / (21 * 28), kVowelFirst + index / 28 % 21,
                 kTrailingBase + index % 28};
  jamo.size = index % 28 == 0 ? 2 : 3;
  return jamo;
}

Mapping lower_case(char32_t c) {
  return find_mapping(kLower, c);
}

int combining_class(char32_t c) {
  const CombiningRange* range = find_range(kCombining, c);
  return range ? range->combining_class : 0;
}

bool is_word_character(char32_t c) {
  return find_range(kWordCharacters, c) != nullptr;
}

bool is_digit(char32_t c) {
  constexpr char32_t kAscii_end = 0x80;
  if (c < kAscii_end) return c >= U'0' && c <= U'9';
  return find_range(kNumbers, c) != nullptr;
}

bool is_mark(char32_t c) {
  return find_range(kMarks, c) != nullptr;
}

char32_t previous_code_point(std::string_view text, size_t& end) {
  do
    --end;
  while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80);
  size_t position = end;
  return next_code_point(text, position);
}

void append_utf8(std::string& text, char32_t c) {
  auto tail = [](char32_t bits) { return static_cast<char>(0x80 | (bits & 0x3F)); };
  if (c < 0x80) {
    text.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    text.append({static_cast<char>(0xC0 | c >> 6), tail(c)});
  } else if (c < 0x10000) {
    text.append({static_cast<char>(0xE0 | c >> 12), tail(c >> 6), tail(c)});
  } else {
    text.append({static_cast<char>(0xF0 | c >> 18), tail(c >> 12), tail(c >> 6), tail(c)});
  }
}

}  // namespace ferry::text
