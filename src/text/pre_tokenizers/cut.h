#pragma once
// cut() cuts pieces at matches of anything that finds them. Called by the pre-tokenizers that
// differ in what they find.

#include <cstddef>
#include <string_view>

#include "src/text/pieces.h"

namespace ferry::text {

/** The fate of a match: a piece, nothing, a part of the piece before or after it, or one piece
 * with the matches beside it. */
enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

/** Calls find_all(text, found) for each piece, which calls found(begin, end) for each match, from
 * left to right, until it returns false, and returns whether it went to the end. `invert`: what
 * lies between the matches counts as matched. May stop where there are `enough` pieces. */
template <typename FindAll>
void cut(Pieces& pieces, Behavior behavior, bool invert, size_t enough, FindAll find_all) {
  const std::string_view text = pieces.text.text();
  std::vector<Span>& spans = pieces.spans;
  pieces.refine([&](Span piece) {
    if (spans.size() >= enough) return;
    const size_t n_before = spans.size();
    bool after_match = false;
    bool open = false;  // merged_with_next: the last piece waits for what follows
    auto add = [&](size_t begin, size_t end, bool matched) {
      if (begin == end) return;
      const bool has_last = spans.size() > n_before;
      const Span added = span_of(piece.begin + begin, piece.begin + end);
      bool merge = false;
      switch (behavior) {
        case Behavior::isolated:
          break;
        case Behavior::removed:
          if (matched) return;
          break;
        case Behavior::merged_with_previous:
          merge = matched && !after_match && has_last;
          break;
        case Behavior::merged_with_next:
          merge = open && !matched;
          open = matched;
          break;
        case Behavior::contiguous:
          merge = matched == after_match && has_last;
          break;
      }
      after_match = matched;
      if (merge)
        spans.back().end = added.end;
      else
        spans.push_back(added);
    };
    const std::string_view part = text.substr(piece.begin, piece.size());
    const bool may_stop = behavior == Behavior::isolated || behavior == Behavior::removed;
    size_t done = 0;
    const bool to_the_end = find_all(part, [&](size_t begin, size_t end) {
      add(done, begin, invert);
      add(begin, end, !invert);
      done = end;
      return !may_stop || spans.size() < enough;
    });
    if (to_the_end) add(done, part.size(), invert);
  });
}

}  // namespace ferry::text
