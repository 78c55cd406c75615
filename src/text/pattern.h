#pragma once
// Pattern is a regular expression of the kind that tokenizers use to cut text: classes by Unicode
// category, quantifiers of single characters, alternatives, look-ahead. Matches as Oniguruma does,
// over our own tables (its Unicode is that of no library here). What is not written in this subset
// is refused when the pattern is made. A pattern comes with a model, which may be anybody's: its
// length and depth are bounded when it is made, and its steps when a text is searched. Called by
// the pre-tokenizers and normalizers.

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

  /** Throws std::invalid_argument that says which part is not understood, or that the pattern is
   * too long or too deep; and of a pattern that matches nothing at all. */
  explicit Pattern(std::string_view expression);

  /** The pattern that matches this very text. */
  static Pattern literal(std::string_view text);

  /** Calls found(begin, end) for each match of valid UTF-8, from left to right, until it returns
   * false; none is empty. Returns whether it went to the end. Throws Error(data) where that takes
   * more steps than any tokenizer's pattern needs: one that tries all ways through a text. */
  template <typename Found>
  bool find_all(std::string_view text, Found found) const {
    int64_t n_steps_left = steps_for(text.size());
    for (size_t i = 0; i < text.size();) {
      const size_t end = match(text, i, n_steps_left);
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
    bool gives_back() const { return least != most && !possessive; }
  };

  Pattern() = default;
  /** A step is a node that is tried, or a character that one takes or gives back. */
  static int64_t steps_for(size_t n_bytes) {
    constexpr int64_t kLeast = 1'000'000, kEachByte = 100;
    return kLeast + kEachByte * static_cast<int64_t>(n_bytes);
  }
  size_t match(std::string_view text, size_t begin, int64_t& n_steps_left) const;
  size_t run(int node, std::string_view text, size_t at, int64_t& n_steps_left) const;
  size_t run_set(const Node& node, std::string_view text, size_t at, int64_t& n_steps_left) const;
  size_t take(const Node& node, std::string_view text, size_t& at, int64_t& n_steps_left) const;
  void check_size() const;
  void index_branches();
  std::vector<bool> empty_nodes() const;
  template <typename Holds>
  std::vector<bool> beginning_nodes(const std::vector<bool>& empty, Holds holds) const;

  std::vector<Node> nodes_;  // each after all that may follow it
  std::vector<CharSet> sets_;
  std::vector<int> branches_;                    // of the whole
  std::array<uint32_t, 0x80> ascii_branches_{};  // bits of the branches that may begin so
  std::array<uint32_t, 32> wide_branches_{};     // by category
};

}  // namespace ferry::text
