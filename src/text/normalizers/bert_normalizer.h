#pragma once
// BertNormalizer cleans text as BERT's vocabularies expect: control characters out, white space to
// blanks, Chinese characters set apart, accents stripped, lower case. Same result as Hugging Face's
// BertNormalizer, byte for byte, in one pass over the text.

#include <array>
#include <memory>

#include "src/text/registry.h"

namespace ferry::text {

struct BertNormalizerOptions {
  bool clean_text = false;
  bool handle_chinese_chars = false;
  bool strip_accents = false;
  bool lowercase = false;
};

class BertNormalizer final : public Normalizer {
 public:
  BertNormalizer(BertNormalizerOptions options, std::shared_ptr<const CharTable> table);

  static std::unique_ptr<Normalizer> read(const JsonReader& section, const StageContext& context);

  void normalize(NormalizedText& text) const override;
  const BertNormalizerOptions& options() const { return options_; }

 private:
  template <typename Out>
  class Pass;

  BertNormalizerOptions options_;
  std::shared_ptr<const CharTable> table_;
  static constexpr char kDrop = '\0';
  std::array<char, 128>
      ascii_;  // what each becomes; kDrop: nothing (a NUL that stays takes the slow road)
};

}  // namespace ferry::text
