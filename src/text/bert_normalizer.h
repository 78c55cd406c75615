#pragma once
// BertNormalizer cleans text as BERT's vocabularies expect: control characters out, white space to
// blanks, Chinese characters set apart, accents stripped, lower case. Same result as Hugging Face's
// BertNormalizer, byte for byte. Called by the tokenizer for every piece of text between added
// tokens, and once for each normalized added token.

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "src/text/unicode.h"

namespace ferry::text {

struct BertNormalizerOptions {
  bool clean_text = false;
  bool handle_chinese_chars = false;
  bool strip_accents = false;
  bool lowercase = false;
};

class BertNormalizer {
 public:
  BertNormalizer(BertNormalizerOptions options, std::shared_ptr<const CharTable> table);

  /** Appends the normalized form of valid UTF-8. */
  void normalize(std::string_view text, std::string& out) const;

 private:
  class Marks;
  void append(char32_t c, Marks& marks, std::string& out) const;
  void append_lowered(char32_t c, std::string& out) const;

  BertNormalizerOptions options_;
  std::shared_ptr<const CharTable> table_;
  static constexpr char kDrop = '\0';
  std::array<char, 128>
      ascii_;  // what each becomes; kDrop: nothing (a NUL that stays takes the slow road)
};

}  // namespace ferry::text
