#pragma once
// The tokenizer as the data room calls it. Training and `ferry plan` share it, so that both count
// the same tokens.

#include <cstdint>

#include "src/data/tokenized.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** A text, or a pair of them, as at most max_length tokens. The tokenizer outlives it. */
Tokenize tokenize_with(const Tokenizer& tokenizer, int64_t max_length);

}  // namespace ferry
