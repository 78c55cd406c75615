#pragma once
// Labels that words stand for: a prompt asks a language model for a word at one place of a text,
// and the words that may stand there are the labels' words (Schick and Schütze 2021). No torch.

#include <cstdint>
#include <string_view>
#include <vector>

namespace ferry {

/** The logit of a word of several tokens, all of which are asked for at the same place. */
enum class WordTokens : uint8_t { first, mean, max };

/** The words of each label, and the tokens of each word: none is empty. */
struct LabelWords {
  std::vector<std::vector<std::vector<int32_t>>> words;  ///< by label, word, token
  WordTokens tokens = WordTokens::first;

  bool operator==(const LabelWords&) const = default;
};

/** The head of a prompt. */
struct PromptHead {
  LabelWords labels;
  /** A trained row for each label, which starts as the mean of its words' rows, in place of the
   * words themselves. */
  bool is_soft = false;
};

/** The name of these rows in files. */
inline constexpr std::string_view kLabelRows = "verbalizer.weight";
/** The name of the rows of soft tokens in the files of a whole model. */
inline constexpr std::string_view kSoftRows = "soft_tokens.weight";

/** A token beside the vocabulary, by the tokens whose rows it starts as the mean of. Without any it
 * is drawn. */
using SoftToken = std::vector<int32_t>;

}  // namespace ferry
