#include "src/train/prepare/tokenize.h"

namespace ferry {

Tokenize tokenize_with(const Tokenizer& tokenizer, int64_t max_length) {
  return [&tokenizer, max_length](const Example& example) {
    thread_local Encoding encoding;
    if (example.text_pair)
      tokenizer.encode_pair(example.text, *example.text_pair, max_length, encoding);
    else
      tokenizer.encode(example.text, max_length, encoding);
    TokenizedExample out{.ids = encoding.ids, .type_ids = encoding.type_ids};
    out.truncated = static_cast<int64_t>(out.ids.size()) == max_length;
    return out;
  };
}

}  // namespace ferry
