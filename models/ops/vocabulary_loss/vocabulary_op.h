#pragma once
// The logits of a vocabulary in chunks, and the loss: of all words, or of a piece of them.
#include "models/core/operation.h"

namespace ferry::ops {

/** The way from products to a vocabulary's logits. */
struct LogitsRule {
  float factor = 1;    ///< of t word^T + bias
  float soft_cap = 0;  ///< the logits l then become cap * tanh(l / cap); 0: they do not
};

struct VocabularyAttributes {
  LogitsRule rule;
  int64_t n_table_rows = 0;  ///< of a piece: its words
  int64_t first_word = 0;    ///< of a piece: the word of its first row
  VocabularyPiece piece;
};

/** Of all words in one. */
template <class T>
struct VocabularyStates {
  T lse;
  static constexpr std::array<std::string_view, 1> kNames = {"lse"};
};

/** `bias` may be absent. */
template <class T>
struct VocabularyParams {
  T word, bias;
  static constexpr std::array<std::string_view, 2> kNames = {"word", "bias"};
};

template <class T>
struct VocabularyValues {
  T t;
  static constexpr std::array<std::string_view, 1> kNames = {"t"};
};

template <class T>
struct VocabularyGrads {
  T t, dt;
  static constexpr std::array<std::string_view, 2> kNames = {"t", "dt"};
};

/** `before`, `state`: (4, tokens) fp32, what is known of each row's logits by the pieces before,
 * and with this one; one tensor. `lse` (tokens): the last piece's forward writes it. */
template <class T>
struct VocabularyPieceValues {
  T t, before, state, lse;
  static constexpr std::array<std::string_view, 4> kNames = {"t", "before", "state", "lse"};
};

/** `before`: the sum of the pieces before, absent of the first. dt is the sum with this piece's
 * part; of the last piece it is the gradient. */
template <class T>
struct VocabularyPieceGrads {
  T t, lse, before, dt;
  static constexpr std::array<std::string_view, 4> kNames = {"t", "lse", "before", "dt"};
};

/** A piece adds to values that lie between blocks. */
extern const OpDef kVocabularyLoss, kVocabularyPiece;

}  // namespace ferry::ops
