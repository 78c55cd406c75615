#pragma once
// WordPieceDecoder joins continuations to the tokens before them, puts blanks between words and,
// with cleanup, takes those away that English does not write.

#include <memory>
#include <string>
#include <utility>

#include "src/text/registry.h"

namespace ferry::text {

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}

  static std::unique_ptr<Decoder> read(const JsonReader& section, const StageContext& context);

  void decode(std::vector<std::string>& tokens) const override;

 private:
  std::string prefix_;
  bool cleanup_;
};

}  // namespace ferry::text
