#pragma once
// Code points of UTF-8 and the character properties that Hugging Face `tokenizers` goes by:
// CharTable and CategoryTable answer the frequent questions with one load, the functions below them
// the rare ones by bisection. Called by normalizers, pre-tokenizers and the added tokens. The data
// are in unicode_tables.inc, written by unicode_tables.py, which says why they are our own.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ferry::text {

/** Flags of every code point, in pages of 256; about 300 KiB. Immutable, so it may be read from any
 * thread. */
class CharTable {
 public:
  enum Flag : uint8_t {
    kRemoved = 1,      // clean_text drops it
    kSpace = 2,        // ends a word
    kPunctuation = 4,  // is a word by itself
    kAccent = 8,       // strip_accents drops it
    kCjk = 16,         // handle_chinese_chars sets it apart
    kDecomposes = 32,  // has a canonical decomposition
    kHasLower = 64,    // has another lower case
    kCombines = 128,   // has a combining class above 0
  };

  CharTable();

  /** The flags of a Unicode scalar value. */
  uint8_t flags(char32_t c) const { return pages_[page_of_[c >> 8] + (c & 0xFF)]; }

 private:
  void set(char32_t first, char32_t last, Flag flag);

  std::array<uint32_t, 0x1100>
      page_of_{};  // where the page of 256 begins; 0: the page without flags
  std::vector<uint8_t> pages_;
};

/** The general categories, in the order of unicode_tables.py; control characters that are white
 * space are apart. */
enum class Category : uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Co,
  Cn,
  Cc_space
};

constexpr uint32_t category_bit(Category category) {
  return uint32_t{1} << static_cast<unsigned>(category);
}

/** A value of every code point, in pages of 256 of which equal ones are kept once. */
template <typename Value>
class RunTable {
 public:
  Value of(char32_t c) const { return pages_[page_of_[c >> 8] + (c & 0xFF)]; }

 protected:
  /** Of each run the first code point and, in the last five bits, the value. */
  explicit RunTable(std::span<const uint32_t> runs);

 private:
  std::array<uint32_t, 0x1100> page_of_{};  // where the page of 256 begins
  std::vector<Value> pages_;
};

/** The category of every code point, as the patterns of `tokenizers` know it; 100 KiB. */
class CategoryTable : public RunTable<Category> {
 public:
  /** The one of the process: immutable, made at the first call. */
  static const CategoryTable& get();

 private:
  CategoryTable();
};

/** What the rules of grapheme clusters go by, in the order of unicode_tables.py. Flags are not told
 * apart in pairs: whoever asks maps no cluster that holds one. */
enum class GraphemeClass : uint8_t {
  other,
  control,
  prepend,
  l,
  v,
  t,
  lv,
  lvt,
  pictograph,
  consonant,
  spacing_mark,
  extend,
  conjunct_extend,
  linker,
  zwj
};

/** The class of every code point; 50 KiB. */
class GraphemeTable : public RunTable<GraphemeClass> {
 public:
  /** The one of the process: immutable, made at the first call. */
  static const GraphemeTable& get();

 private:
  GraphemeTable();
};

/** Up to four code points that a character turns into; size 0: it stays as it is. */
struct Mapping {
  std::array<char32_t, 4> points{};
  int size = 0;
  const char32_t* begin() const { return points.data(); }
  const char32_t* end() const { return points.data() + size; }
};

/** The full canonical decomposition, Hangul included. */
Mapping decomposition(char32_t c);

/** The full compatibility decomposition where it is another one, else the canonical one; empty if
 * there is none. Up to 18 code points. */
std::u32string compatibility_decomposition(char32_t c);

/** The character that two compose to, Hangul included; 0 if they do not. */
char32_t composition(char32_t first, char32_t second);

/** Characters that are the second of a composition. */
std::vector<char32_t> composing_seconds();

/** The full lower-case mapping, without context. */
Mapping lower_case(char32_t c);

/** The canonical combining class, 0 to 254. */
int combining_class(char32_t c);

/** A letter, mark, digit, connector or joiner: what `single_word` takes for a part of a word. */
bool is_word_character(char32_t c);

/** A number as the pre-tokenizer Digits knows them: by a younger Unicode than the patterns' \p{N}.
 */
bool is_digit(char32_t c);

/** A combining mark as the normalizer StripAccents knows them; strip_accents of BERT knows fewer.
 */
bool is_mark(char32_t c);

/** Reads the code point at `position` of valid UTF-8 and moves on past it. */
inline char32_t next_code_point(std::string_view text, size_t& position) {
  auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[position + i]));
  };
  const char32_t lead = byte(0);
  if (lead < 0x80) {
    position += 1;
    return lead;
  }
  if (lead < 0xE0) {
    const char32_t c = (lead & 0x1F) << 6 | (byte(1) & 0x3F);
    position += 2;
    return c;
  }
  if (lead < 0xF0) {
    const char32_t c = (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    position += 3;
    return c;
  }
  const char32_t c =
      (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  position += 4;
  return c;
}

/** The code point that ends at `end` (above 0) of valid UTF-8; `end` moves back before it. */
char32_t previous_code_point(std::string_view text, size_t& end);

/** Appends a scalar value as UTF-8. */
void append_utf8(std::string& text, char32_t c);

}  // namespace ferry::text
