#pragma once
// Pattern is a regular expression of the kind that tokenizers use to cut text: classes by Unicode
// category, quantifiers of single characters, alternatives, look-ahead. Matches as Oniguruma does,
// over our own tables (its Unicode is that of no library here). What is not written in this subset
// is refused when the pattern is made. Called by the pre-tokenizers and normalizers.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/unicode/unicode.h"

namespace ferry::text {

/** A set of characters. */
class CharSet {
 public:
  void add(char32_t first, char32_t last);
  void add_categories(uint32_t categories) { categories_ |= categories; }
  /** Letters A to Z with their other case; false if it has categories, whose cases are not known.
   */
  bool ignore_case();
  /** To be called last: fixes the set. `negated`: it holds all other characters. */
  void close(bool negated);

  bool has_ascii(unsigned char c) const { return ascii_[c >> 6] >> (c & 63) & 1; }
  bool has(char32_t c) const {
    return c < 0x80 ? has_ascii(static_cast<unsigned char>(c)) : has_wide(c);
  }
  bool has_wide(char32_t c) const;
  /** May it have a character beyond ASCII of one of these categories? */
  bool may_have(uint32_t categories) const;

 private:
  struct Range {
    char32_t first, last;
  };
  std::array<uint64_t, 2> ascii_{};  // final: with negation
  uint32_t categories_ = 0;
  std::vector<Range> ranges_;
  bool negated_ = false;
};

class Pattern {
 public:
  static constexpr size_t kNone = std::string_view::npos;

  /** Throws std::invalid_argument that says which part is not understood, and of a pattern that
   * matches nothing at all. */
  explicit Pattern(std::string_view expression);

  /** The pattern that matches this very text. */
  static Pattern literal(std::string_view text);

  /** Calls found(begin, end) for each match of valid UTF-8, from left to right, until it returns
   * false; none is empty. Returns whether it went to the end. */
  template <typename Found>
  bool find_all(std::string_view text, Found found) const {
    for (size_t i = 0; i < text.size();) {
      const size_t end = match(text, i);
      if (end == kNone) {
        next_code_point(text, i);
        continue;
      }
      if (!found(i, end)) return false;
      i = end;
    }
    return true;
  }

 private:
  class Parser;
  static constexpr int kAccept = -1;
  static constexpr int kUnlimited = INT32_MAX;
  struct Node {
    enum Kind : uint8_t { set, branch, look } kind = set;
    bool possessive = false;  // set: gives nothing back
    bool negated = false;     // look
    int set_index = 0;
    int least = 1, most = 1;    // set: how many characters
    int next = kAccept;         // what follows
    std::vector<int> branches;  // branch: what may follow, in order; look: the one to look for
  };

  Pattern() = default;
  size_t match(std::string_view text, size_t begin) const;
  size_t run(int node, std::string_view text, size_t at) const;
  size_t run_set(const Node& node, std::string_view text, size_t at) const;
  void index_branches();
  template <typename Holds>
  bool may_begin(int node, Holds holds) const;
  bool may_be_empty(int node) const;

  std::vector<Node> nodes_;
  std::vector<CharSet> sets_;
  std::vector<int> branches_;                    // of the whole
  std::array<uint32_t, 0x80> ascii_branches_{};  // bits of the branches that may begin so
  std::array<uint32_t, 32> wide_branches_{};     // by category
};

}  // namespace ferry::text
