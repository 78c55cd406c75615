#pragma once
// BertPreTokenizer cuts text at white space, with every punctuation mark a piece by itself.

#include <array>
#include <cstdint>
#include <memory>

#include "src/text/registry.h"

namespace ferry::text {

class BertPreTokenizer final : public PreTokenizer {
 public:
  explicit BertPreTokenizer(std::shared_ptr<const CharTable> table);

  static std::unique_ptr<PreTokenizer> read(const JsonReader& section, const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;

 private:
  std::shared_ptr<const CharTable> table_;
  std::array<uint8_t, 128> ascii_;  // the flags of the first characters
};

}  // namespace ferry::text
