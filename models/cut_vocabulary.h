#pragma once
// A table of words that is larger than any layer would decide how large the slots are that all
// blocks share. It is cut into pieces of whole rows, each a block of its own: first the lookups of
// the embeddings piece by piece, then the rest of the embeddings; and the head without its matrix,
// then the logits piece by piece. All bits but those of the gradients' norm, which is added up
// block by block, are those of the whole table. Torch-free.

#include "models/tensor_table.h"

namespace ferry {

/** Elements of a piece, at most, unless so many words whose logits exist at a time have more. */
inline constexpr int64_t kPieceElements_max = 64 << 20;

/** Cuts the tables of words that have more elements than the largest layer and than
 * piece_elements_max. The pieces follow from the model's sizes alone: no plan changes a bit. */
void cut_vocabulary(ModelTable& model, int64_t piece_elements_max = kPieceElements_max);

/** A tensor (tokens, columns) of a micro-batch that blocks leave for others; or by columns. */
struct PassedValue {
  std::string name;
  int64_t columns = 0;
  DType type = DType::f32;

  int64_t n_bytes(const BatchShape& shape) const;
};

/** The values of a block's passes, as indices into BlockLinks::values; -1: it has none. */
struct BlockEnds {
  int x = -1, y = -1;    ///< Block::forward's; its backward reads x, too
  int dy = -1, dx = -1;  ///< Block::backward's; one value where dx is added up in place
  int logits_state = -1;
  int lse = -1;             ///< of the backwards of a head's pieces
  bool writes_lse = false;  ///< the forward writes it: of the last piece
  bool changes = false;     ///< y or logits_state has what the pieces before wrote
};

/** The graph of what passes between blocks. */
struct BlockLinks {
  std::vector<PassedValue> values;
  std::vector<BlockEnds> ends;  ///< by block
  std::vector<int> backwards;   ///< blocks in the order of their backwards
};
BlockLinks links_of(const ModelTable& model);

}  // namespace ferry
