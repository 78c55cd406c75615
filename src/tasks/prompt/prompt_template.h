#pragma once
// A template over a tokenizer: makes the sequence of an example. Its words, its mask and its soft
// tokens are always there; only texts are cut where a sequence would be too long.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/core/prompt.h"
#include "src/data/example.h"
#include "src/tasks/prompt/template_text.h"
#include "src/text/tokenizer.h"

namespace ferry {

/** An example in its template. */
struct PromptedExample {
  std::vector<int32_t> ids;
  size_t asked = 0;  ///< the token whose output is the word that is asked for
  bool truncated = false;
  /** The token's place in the example's texts where it is one of theirs; else text is -1. */
  struct Place {
    int text = -1;
    TextRange bytes;
  };
  std::vector<Place> places;  ///< (ids), where they are wanted
};

class PromptTemplate {
 public:
  /** Throws Error(usage) for a wrong template, or one that a model of this kind cannot answer:
   * a masked model needs a mask token, and a decoder reads nothing behind the mask. `first_soft`:
   * the id of the first soft token. */
  PromptTemplate(const std::string& text,
                 const Tokenizer& tokenizer,
                 bool is_decoder,
                 int32_t first_soft);

  /** Throws Error(usage) where max_length has no room for the template, and Error(data) for an
   * example without the second text that the template shows. */
  PromptedExample apply(const Example& example,
                        const Tokenizer& tokenizer,
                        int64_t max_length,
                        Offsets offsets = Offsets::skip) const;

  const std::vector<SoftToken>& soft_tokens() const { return soft_tokens_; }
  /** Words behind a decoder's mask, which it does not read. */
  bool leaves_words_out() const { return leaves_words_out_; }

 private:
  struct Piece {
    int text = -1;             ///< of the example; -1: `ids`
    std::vector<int32_t> ids;  ///< (tokens)
    bool after_blank = false, is_asked = false, may_be_cut = false;
  };

  void add_soft(const TemplatePart& part, const Tokenizer& tokenizer, int32_t first_soft);

  std::vector<Piece> pieces_;
  std::vector<SoftToken> soft_tokens_;
  std::vector<std::pair<int64_t, std::vector<int32_t>>> named_soft_;  ///< by soft_id
  bool leaves_words_out_ = false;
};

}  // namespace ferry
