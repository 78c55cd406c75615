#pragma once
// ChangeWriter writes a new text from characters and the changes that `tokenizers` counts with
// them, which say where each came from. Called by normalizers whose characters are not one for one.

#include <cstddef>

#include "src/text/pieces.h"

namespace ferry::text {

template <typename Out>
class ChangeWriter {
 public:
  /** Bytes [begin, end) of the old text are written anew. */
  ChangeWriter(Out& out, size_t begin, size_t end)
      : out_(out), at_(begin), before_(begin), end_(end) {}

  /** `change`: 0, it stands for the next character of the text; 1, it was put beside the one before
   * it; -n, it stands for the next one, and n more are gone. */
  void put(char32_t c, int change) {
    if (change > 0) {
      out_.put(c, before_ < at_ ? out_.origin(before_, at_) : Span{});
      return;
    }
    Span origin;
    for (int n = change; n <= 0 && at_ < end_; ++n) {
      before_ = at_;
      next_code_point(out_.source(), at_);
      if (n == change) origin = out_.origin(before_, at_);
    }
    out_.put(c, origin);
  }

 private:
  Out& out_;
  size_t at_;      // of the next character of the old text
  size_t before_;  // of the last one that was taken
  size_t end_;
};

}  // namespace ferry::text
