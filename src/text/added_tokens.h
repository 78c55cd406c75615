#pragma once
// Added tokens are found in the text before WordPiece sees it: special ones such as [SEP], and
// words that a user added. AddedTokens holds one of the two sets that Hugging Face keeps: those
// found in the text as it came, and those found in its normalized form. It cuts a text into tokens
// and the pieces between them.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/trie.h"
#include "src/text/unicode/unicode.h"

namespace ferry::text {

/** As in the `added_tokens` of tokenizer.json. */
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // not within a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // its normalized form is sought in the normalized text
  bool special = false;      // decode may leave it out
  bool is_normal = false;    // normalized: the content is the normalized form
};

class AddedTokens {
 public:
  AddedTokens() = default;

  /** `tokens`: each content once and not empty, the normalized form for those sought in it. */
  explicit AddedTokens(std::vector<AddedToken> tokens);

  /** Calls piece(begin, end) for what lies between tokens (never empty) and token(id, begin, end)
   * for each of them, from left to right. Where several begin at one place the longest is taken. */
  template <typename Piece, typename Token>
  void split(std::string_view text, const CharTable& table, Piece piece, Token token) const {
    size_t done = 0;  // bytes given out
    for (size_t i = 0; i < text.size();) {
      if (!begins_[static_cast<unsigned char>(text[i])]) {
        ++i;
        continue;
      }
      const Trie::Match match = trie_.longest_prefix(text.substr(i));
      if (match.value < 0) {
        ++i;
        continue;
      }
      const AddedToken& added = tokens_[static_cast<size_t>(match.value)];
      size_t first = i, last = i + match.size;
      i = last;
      if (added.single_word && within_word(text, first, last)) continue;
      if (added.lstrip) first = std::max(skip_space_back(text, first, table), done);
      if (added.rstrip) last = skip_space(text, last, table);
      if (done < first) piece(done, first);
      token(added.id, first, last);
      done = last;
    }
    if (done < text.size()) piece(done, text.size());
  }

 private:
  static bool within_word(std::string_view text, size_t first, size_t last);
  static size_t skip_space(std::string_view text, size_t position, const CharTable& table);
  static size_t skip_space_back(std::string_view text, size_t position, const CharTable& table);

  std::vector<AddedToken> tokens_;
  Trie trie_;  // of the contents, to indices into tokens_
  std::array<bool, 256> begins_{};
};

}  // namespace ferry::text
