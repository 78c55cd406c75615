#pragma once
// WordLevel: each piece is a token of the vocabulary, or the unknown token.

#include <cstdint>
#include <string>
#include <vector>

#include "src/text/registry.h"
#include "src/text/token_map.h"

namespace ferry::text {

class WordLevel final : public Model {
 public:
  /** vocabulary: the token of each id; unknown_id -1: there is none. */
  WordLevel(const std::vector<std::string>& vocabulary, int32_t unknown_id)
      : tokens_(vocabulary), unknown_id_(unknown_id) {}

  static ReadModel read(const JsonReader& section, const StageContext& context, bool gives_bytes);

  /** Throws Error(data) where a piece is not in the vocabulary and nothing stands for it. */
  void encode(const Pieces& pieces, size_t enough, TokenSink out) const override;
  bool fills_every_piece() const override { return true; }

 private:
  TokenMap tokens_;
  int32_t unknown_id_;
};

}  // namespace ferry::text
