#pragma once
// The text of tokens as they come: pieces of whole characters, and none of a stop string. No torch.
//
//   TokenText text(tokenizer, prompt_ids, stops);
//   print(text.add(id)); ... print(text.finish());

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/text/tokenizer.h"

namespace ferry {

class TokenText {
 public:
  /** `tokenizer` outlives it. The last tokens of the prompt say how the first new one is written.
   */
  TokenText(const Tokenizer& tokenizer,
            std::span<const int32_t> prompt,
            std::vector<std::string> stops);

  /** The text that is new and stays: a character that is not whole and what may become a stop
   * string wait. */
  std::string add(int32_t id);
  /** What waited. */
  std::string finish();
  /** A stop string came; the text ends before it. */
  bool is_stopped() const { return is_stopped_; }
  /** All that add() and finish() gave. */
  const std::string& text() const { return text_; }

 private:
  std::string give(size_t end);

  const Tokenizer& tokenizer_;
  std::vector<std::string> stops_;
  std::vector<int32_t> window_;  // the tokens of the last piece, then those that wait
  std::string window_text_;      // of the last piece's
  size_t n_settled_ = 0;         // tokens of the window that are of the last piece
  std::string waiting_;          // whole characters that may become a stop string
  std::string text_;
  bool is_stopped_ = false;
};

}  // namespace ferry
