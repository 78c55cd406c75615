#include "src/text/pre_tokenizers/character_splits.h"

#include "src/text/pre_tokenizers/split.h"

namespace ferry::text {

std::unique_ptr<PreTokenizer> CharacterSplit::read_words(const JsonReader&,
                                                         const StageContext& context) {
  return std::make_unique<CharacterSplit>(Match::words, Behavior::removed, true, context.table);
}

std::unique_ptr<PreTokenizer> CharacterSplit::read_white_space(const JsonReader&,
                                                               const StageContext& context) {
  return std::make_unique<CharacterSplit>(Match::white_space, Behavior::removed, false,
                                          context.table);
}

std::unique_ptr<PreTokenizer> CharacterSplit::read_punctuation(const JsonReader& section,
                                                               const StageContext& context) {
  return std::make_unique<CharacterSplit>(Match::punctuation, read_behavior(section, "Isolated"),
                                          false, context.table);
}

std::unique_ptr<PreTokenizer> CharacterSplit::read_digits(const JsonReader& section,
                                                          const StageContext& context) {
  const Behavior behavior =
      section.flag("individual_digits") ? Behavior::isolated : Behavior::contiguous;
  return std::make_unique<CharacterSplit>(Match::digits, behavior, false, context.table);
}

int CharacterSplit::kind_of(char32_t c) const {
  const uint8_t flags = table_->flags(c);
  switch (match_) {
    case Match::words:
      return flags & CharTable::kSpace ? 0 : is_word_character(c) ? 1 : 2;
    case Match::white_space:
      return flags & CharTable::kSpace ? 1 : 0;
    case Match::punctuation:
      return flags & CharTable::kPunctuation ? 1 : 0;
    case Match::digits:
      break;
  }
  return is_digit(c) ? 1 : 0;
}

void CharacterSplit::split(Pieces& pieces, size_t enough) const {
  cut(pieces, behavior_, invert_, enough, [this](std::string_view text, auto found) {
    for (size_t i = 0; i < text.size();) {
      const size_t begin = i;
      const int kind = kind_of(next_code_point(text, i));
      if (kind == 0) continue;
      for (size_t next = i; match_ == Match::words && i < text.size(); i = next)
        if (kind_of(next_code_point(text, next)) != kind) break;
      if (!found(begin, i)) return false;
    }
    return true;
  });
}

}  // namespace ferry::text
