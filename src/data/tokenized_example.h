#pragma once
// Between the tokenizer and a dataset: the samples that a task makes of an example.

#include <cstdint>
#include <functional>
#include <vector>

#include "src/data/example.h"

namespace ferry {

/** A sequence as the model reads it, special tokens included. */
struct TokenizedExample {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // 0 or 1, as many as ids; empty: all 0
  std::vector<int32_t> labels;    // as many as the task gives a sample
  std::vector<float> values;      // the same
  bool truncated = false;         // cut to the length limit
  /** Not whole: the tokens of a part of a document, which whoever has all parts cuts to windows. */
  TextPart part = TextPart::whole;
};

/** Text to tokens: the task and the tokenizer as this room sees them. Appends the samples of an
 * example, at least one. Called from several threads at once when n_threads > 1. */
using Tokenize = std::function<void(const Example&, std::vector<TokenizedExample>&)>;

}  // namespace ferry
