#pragma once
// A table of words that is larger than any layer would decide how large the slots are that all
// blocks share. It is cut into pieces of whole rows, each a block of its own: first the lookups of
// the embeddings piece by piece, then the rest of the embeddings; and the head without its matrix,
// then the logits piece by piece. All bits but those of the gradients' norm, which is added up
// block by block, are those of the whole table. Torch-free.

#include <cstdint>
#include <optional>

#include "models/core/tensor_table.h"

namespace ferry {

/** Elements of a piece, at most, unless so many words whose logits exist at a time have more. */
inline constexpr int64_t kPieceElements_max = 64 << 20;

/** The rule for tables of words: those are cut that have more elements than the largest layer and
 * than piece_elements_max. It asks for the model's sizes alone, so that no plan changes a bit. */
struct VocabularyCut {
  int64_t piece_elements_max = kPieceElements_max;
  /** Elements. No table is cut while it is not known. */
  int64_t largest_layer = INT64_MAX;

  /** Rows of each piece but the last: a multiple of the words whose logits exist at a time. */
  int64_t rows_of_piece(int64_t columns) const;
  bool cuts(int64_t rows, int64_t columns) const;
};

/** The rule for the model, with the size of its largest layer; nullopt: it cuts nothing. */
std::optional<VocabularyCut> cut_for(const ModelTable& whole, int64_t piece_elements_max);

/** Makes a table by `make(cut)`; once more where words are to be cut, which only the whole tells.
 */
template <class Make>
ModelTable make_in_pieces(int64_t piece_elements_max, const Make& make) {
  ModelTable whole = make(VocabularyCut());
  const std::optional<VocabularyCut> cut = cut_for(whole, piece_elements_max);
  return cut ? make(*cut) : whole;
}

}  // namespace ferry
