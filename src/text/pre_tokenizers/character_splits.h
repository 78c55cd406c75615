#pragma once
// Pre-tokenizers that look at one character at a time: Whitespace (words, and runs of other
// characters), WhitespaceSplit, Punctuation, Digits.

#include <memory>
#include <utility>

#include "src/text/pre_tokenizers/cut.h"
#include "src/text/registry.h"

namespace ferry::text {

class CharacterSplit final : public PreTokenizer {
 public:
  /** The matches: runs of word characters and runs of others, white space removed; or single
   * characters. */
  enum class Match { words, white_space, punctuation, digits };

  CharacterSplit(Match match,
                 Behavior behavior,
                 bool invert,
                 std::shared_ptr<const CharTable> table)
      : match_(match), behavior_(behavior), invert_(invert), table_(std::move(table)) {}

  static std::unique_ptr<PreTokenizer> read_words(const JsonReader& section,
                                                  const StageContext& context);
  static std::unique_ptr<PreTokenizer> read_white_space(const JsonReader& section,
                                                        const StageContext& context);
  static std::unique_ptr<PreTokenizer> read_punctuation(const JsonReader& section,
                                                        const StageContext& context);
  static std::unique_ptr<PreTokenizer> read_digits(const JsonReader& section,
                                                   const StageContext& context);

  void split(Pieces& pieces, size_t enough) const override;

 private:
  /** Matches are the runs of characters of one kind; 0: not matched. */
  int kind_of(char32_t c) const;

  Match match_;
  Behavior behavior_;
  bool invert_;
  std::shared_ptr<const CharTable> table_;
};

}  // namespace ferry::text
