#pragma once
// WordPiece cuts normalized text into words (at white space, with every punctuation mark a word by
// itself) and each word into the longest pieces of the vocabulary, from left to right. Called by
// the tokenizer for every piece of normalized text between added tokens; appends ids, allocates
// nothing else.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/trie.h"
#include "src/text/unicode.h"

namespace ferry::text {

struct WordPieceOptions {
  std::string continuing_prefix = "##";
  int64_t max_word_chars = 100;  // a longer word is unknown
  int32_t unknown_id = 0;
};

class WordPiece {
 public:
  /** vocabulary: the token of each id; no two equal. */
  WordPiece(WordPieceOptions options,
            const std::vector<std::string>& vocabulary,
            std::shared_ptr<const CharTable> table);

  /** Appends the ids of valid UTF-8. Stops after the word that brings `ids` to `enough` or more. */
  void encode(std::string_view text, size_t enough, std::vector<int32_t>& ids) const;

 private:
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

  WordPieceOptions options_;
  std::shared_ptr<const CharTable> table_;
  Trie beginnings_;     // every token
  Trie continuations_;  // those with the prefix, without it
};

}  // namespace ferry::text
