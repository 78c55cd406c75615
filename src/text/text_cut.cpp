#include "src/text/text_cut.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ferry {
namespace {

/** Bytes that are encoded on either side of a place: many more words than a tokenizer looks at at
 * once. */
constexpr size_t kAround_bytes = 2048;
/** The distance in which places are looked for, and how many of a kind are tried. */
constexpr size_t kReach_bytes = 64 << 10;
constexpr int kTries = 32;

bool continues_character(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

class CutFinder {
 public:
  CutFinder(const Tokenizer& tokenizer, std::string_view text, bool continues)
      : tokenizer_(tokenizer), text_(text), continues_(continues) {}

  /** The last good place before `near` of those that `is_meant`. */
  template <typename IsMeant>
  std::optional<TextCut> find(size_t near, const IsMeant& is_meant) {
    const size_t last = near > kReach_bytes ? near - kReach_bytes : 1;
    int n_tries = 0;
    for (size_t at = near; at >= last && n_tries < kTries; --at) {
      if (!is_meant(text_, at)) continue;
      ++n_tries;
      if (const auto cut = try_at(at)) return cut;
    }
    return std::nullopt;
  }

 private:
  std::optional<TextCut> try_at(size_t at) {
    size_t begin = at - std::min(at, kAround_bytes);
    size_t end = std::min(at + kAround_bytes, text_.size());
    while (begin > 0 && continues_character(text_[begin]))
      --begin;
    while (end < text_.size() && continues_character(text_[end]))
      ++end;
    const bool is_rest = continues_ && begin == 0;
    whole_.clear();
    tokenizer_.append_ids(text_.substr(begin, end - begin), whole_, is_rest);
    for (const bool continues : {false, true}) {
      parts_.clear();
      tokenizer_.append_ids(text_.substr(begin, at - begin), parts_, is_rest);
      tokenizer_.append_ids(text_.substr(at, end - at), parts_, continues);
      if (whole_ == parts_) return TextCut{at, continues};
    }
    return std::nullopt;
  }

  const Tokenizer& tokenizer_;
  std::string_view text_;
  bool continues_;
  std::vector<int32_t> whole_, parts_;
};

/** Behind a word, before white space that begins with this character. */
auto before(char blank) {
  return [blank](std::string_view text, size_t at) {
    return text[at] == blank && !is_blank(text[at - 1]);
  };
}

/** Before the first word of a line. */
bool at_line_begin(std::string_view text, size_t at) {
  return text[at - 1] == '\n' && !is_blank(text[at]);
}

bool at_character(std::string_view text, size_t at) {
  return !continues_character(text[at]);
}

}  // namespace

std::optional<TextCut> find_text_cut(const Tokenizer& tokenizer,
                                     std::string_view text,
                                     size_t near,
                                     bool continues) {
  CutFinder finder(tokenizer, text, continues);
  if (auto cut = finder.find(near, before('\n'))) return cut;
  if (auto cut = finder.find(near, at_line_begin)) return cut;
  if (auto cut = finder.find(near, before(' '))) return cut;
  return finder.find(near, at_character);
}

}  // namespace ferry
