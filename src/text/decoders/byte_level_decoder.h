#pragma once
// ByteLevelDecoder turns the letters of GPT-2's vocabulary back into bytes.

#include <memory>
#include <string>
#include <string_view>

#include "src/text/registry.h"

namespace ferry::text {

class ByteLevelDecoder final : public Decoder {
 public:
  static std::unique_ptr<Decoder> read(const JsonReader& section, const StageContext& context);

  void decode(std::vector<std::string>& tokens) const override;
};

/** Bytes as UTF-8: each longest beginning of a character that is not finished, and each byte that
 * begins none, becomes U+FFFD. */
std::string valid_utf8(std::string_view bytes);

}  // namespace ferry::text
