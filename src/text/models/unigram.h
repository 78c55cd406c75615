#pragma once
// Unigram takes, of all ways to cut a piece into tokens, the one whose scores add up to the most. A
// character that is no token counts as unknown, with a score below all others; unknown ones side by
// side are one token, or the tokens of their bytes.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/text/registry.h"
#include "src/text/token_map.h"
#include "src/text/trie.h"

namespace ferry::text {

class Unigram final : public Model {
 public:
  /** vocabulary, scores: of each id. */
  Unigram(const std::vector<std::string>& vocabulary,
          std::vector<double> scores,
          int32_t unknown_id,
          bool byte_fallback);

  static ReadModel read(const JsonReader& section, const StageContext& context, bool gives_bytes);

  void encode(const Pieces& pieces, size_t enough, TokenSink out) const override;
  bool fills_every_piece() const override { return true; }

 private:
  /** The best way to cut the text up to here. */
  struct Node {
    double score = 0;
    uint32_t begin = kUnreached;  // of its last token
    int32_t id = 0;
  };
  static constexpr uint32_t kUnreached = UINT32_MAX;

  /** A token, or unknown characters side by side. */
  struct Cut {
    Span span;
    int32_t id;
  };

  void encode_piece(std::string_view piece, std::vector<Node>& ends, std::vector<Cut>& cuts) const;
  bool fall_back(std::string_view text, Span span, TokenSink out) const;

  Trie trie_;
  TokenMap tokens_;
  std::vector<double> scores_;
  double unknown_score_;
  int32_t unknown_id_;
  bool byte_fallback_;
  std::array<int32_t, 256> byte_ids_;  // of <0x00> to <0xFF>, -1 where there is none
};

}  // namespace ferry::text
