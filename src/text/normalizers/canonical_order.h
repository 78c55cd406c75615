#pragma once
// CanonicalOrder sorts the combining characters of a decomposed text by their classes, as Unicode's
// normal forms want it. Called by the normalizers that decompose. The k-th character that is the
// first of its decomposition takes the origin of the k-th character of the text, the others that of
// the one before them: this is how Hugging Face aligns them, also where they change places.

#include <algorithm>
#include <utility>
#include <vector>

#include "src/text/pieces.h"

namespace ferry::text {

/** emit(character, origin) is called for each character in its place. */
template <typename Emit>
class CanonicalOrder {
 public:
  explicit CanonicalOrder(Emit emit) : emit_(std::move(emit)) {}

  /** `first`: the first of what a character of the text, which came from `origin`, became. */
  void add(char32_t c, int combining_class, Span origin, bool first) {
    if (combining_class == 0) {
      flush();
      if (first) last_ = origin;
      emit_(c, last_);
      return;
    }
    marks_.push_back({combining_class, c, first});
    if (first) origins_.push_back(origin);
  }

  /** Lets go what is kept: at the end, and before anything that is emitted past this. */
  void flush() {
    if (marks_.empty()) return;
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    size_t n_origins = 0;
    for (const Mark& mark : marks_) {
      if (mark.first) last_ = origins_[n_origins++];
      emit_(mark.c, last_);
    }
    marks_.clear();
    origins_.clear();
  }

  /** The text went on by a character that did not pass through here. */
  void pass(Span origin) {
    flush();
    last_ = origin;
  }

 private:
  struct Mark {
    int combining_class;
    char32_t c;
    bool first;
  };
  Emit emit_;
  std::vector<Mark> marks_;    // since the last starter
  std::vector<Span> origins_;  // of the characters that they came from
  Span last_;
};

}  // namespace ferry::text
