#pragma once
// WordPiece cuts each word into the longest pieces of the vocabulary, from left to right: the first
// from its tokens, the others from those that begin with the continuing prefix.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/registry.h"
#include "src/text/trie.h"

namespace ferry::text {

struct WordPieceOptions {
  std::string continuing_prefix = "##";
  int64_t max_word_chars = 100;  // a longer word is unknown
  int32_t unknown_id = 0;
};

class WordPiece final : public Model {
 public:
  /** vocabulary: the token of each id; no two equal. */
  WordPiece(WordPieceOptions options, const std::vector<std::string>& vocabulary);

  static ReadModel read(const JsonReader& section, const StageContext& context, bool gives_bytes);

  void encode(const Pieces& pieces, size_t enough, TokenSink out) const override;
  bool fills_every_piece() const override { return true; }

 private:
  template <bool kSpans>
  void encode_word(std::string_view text, Span word, TokenSink out) const;
  bool too_long(std::string_view word) const;

  WordPieceOptions options_;
  Trie beginnings_;     // every token
  Trie continuations_;  // those with the prefix, without it
};

}  // namespace ferry::text
