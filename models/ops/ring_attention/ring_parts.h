#pragma once
// Which rows of queries see which rows of keys, where ranks have a micro-batch's tokens in order,
// as many each. Torch-free.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ferry::ops {

/** Rows [first, first + n) of a rank's tokens, the first at `position` of its sequence. */
struct SequenceRows {
  int64_t first = 0, n = 0, position = 0;
};

/** A part of one sequence's attention: queries of a rank, and keys of a rank. */
struct RingPart {
  SequenceRows queries, keys;
  int64_t length = 0;      ///< of the sequence
  int64_t first_mask = 0;  ///< the element of the dropout mask where its heads begin

  /** From the last key to the first query: 1 or more where the keys come before. */
  int64_t gap() const { return queries.position - (keys.position + keys.n - 1); }
};

struct RingShape {
  std::span<const int32_t> cu_seqlens;  ///< of all ranks' tokens
  int64_t n_tokens = 0;                 ///< of a rank
  int64_t n_heads = 0;
  bool causal = false;
  int64_t window = 0;  ///< as in ScoreRule
};

/** The rank's sequences, or their parts, with the rank's own keys. */
std::vector<RingPart> own_parts(const RingShape& shape, int rank);

/** The rank's queries with the keys of another rank. Two ranks share one sequence at most; none:
 * they share none, or no query sees a key. Where there is a window, rows that see nothing, or are
 * not seen, are left out. */
std::optional<RingPart> part_with(const RingShape& shape, int rank, int other);

}  // namespace ferry::ops
