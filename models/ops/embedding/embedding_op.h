#pragma once
// The rows of tables that words, positions and token types name, added up.
#include "models/core/operation.h"

namespace ferry::ops {

/** The rows that an embedding adds up. */
struct EmbeddingRule {
  int64_t position_offset = 0;  ///< the row of position 0; rows before it are never read
  float word_scale = 1;
  /** The scale itself is rounded to the compute type. transformers holds Gemma's in a tensor of
   * that type. Granite's is a number, which counts in fp32. */
  bool rounds = false;
};

struct EmbeddingAttributes {
  EmbeddingRule rows;
  int64_t n_table_rows = 0;  ///< rows of all its tables
  int64_t first_word = 0;    ///< of a table of words that is a piece: the word of its first row
};

/** `words`: rows that were looked up before, where the table of words is in pieces. */
template <class T>
struct EmbeddingValues {
  T words, y;
  static constexpr std::array<std::string_view, 2> kNames = {"words", "y"};
};

template <class T>
struct EmbeddingGrads {
  T dy, d_words;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "d_words"};
};

/** `soft`: rows of tokens whose ids follow those of `word`; mostly absent. */
template <class T>
struct EmbeddingParams {
  T word, position, type, soft;
  static constexpr std::array<std::string_view, 4> kNames = {"word", "position", "type", "soft"};
};

extern const OpDef kEmbedding;

}  // namespace ferry::ops
