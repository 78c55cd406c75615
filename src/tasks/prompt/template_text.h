#pragma once
// The text of a template, as OpenPrompt has them: words, and in braces the places of the texts, of
// the mask and of soft tokens. Read here into parts; prompt_template.h makes tokens of them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ferry {

enum class TemplatePartKind : uint8_t {
  words,    ///< as they stand there
  text,     ///< the example's text, or its second one
  mask,     ///< the word that is asked for
  soft,     ///< tokens without a text, which are trained
  special,  ///< a special token by its name
};

struct TemplatePart {
  TemplatePartKind kind = TemplatePartKind::words;
  std::string words;  ///< of words and special; of soft the words that its tokens start as
  bool after_blank = false;
  int text = 0;                    ///< of text: 0 or 1
  bool may_be_cut = true;          ///< of text
  std::optional<int64_t> soft_id;  ///< of soft: parts with the same one are the same tokens
  int64_t n_soft = 1;              ///< of soft without words
  bool are_same = false;           ///< of soft: these tokens are one
};

/** Throws Error(usage): braces that do not close, keys that nobody knows, no mask or two of them,
 * no text. */
std::vector<TemplatePart> read_template(std::string_view text);

}  // namespace ferry
