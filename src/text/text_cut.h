#pragma once
// Places where a long text may be cut without changing its tokens, so that a document need not be
// encoded as a whole. No rule for this holds for all tokenizers, so each place is tried: around it
// the text is encoded whole and in two parts.

#include <cstddef>
#include <optional>
#include <string_view>

#include "src/text/tokenizer.h"

namespace ferry {

struct TextCut {
  size_t at = 0;           // where the second part begins
  bool continues = false;  // as Tokenizer::append_ids takes the second part
};

/** A place at which Tokenizer::append_ids gives the ids of both parts for those of the whole: one
 * of the last before `near`, which lies inside the text. `continues`: the text is itself a second
 * part, taken so. Nothing where none was found. Throws as encode. */
std::optional<TextCut> find_text_cut(const Tokenizer& tokenizer,
                                     std::string_view text,
                                     size_t near,
                                     bool continues);

}  // namespace ferry
