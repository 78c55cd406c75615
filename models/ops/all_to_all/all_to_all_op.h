#pragma once
// Ranks that share tokens exchange them for heads of attention, and back.
#include "models/core/operation.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

struct AllToAllAttributes {
  int n_ranks = 1;
  /** From own tokens with all heads to all tokens with own heads; false: back. */
  bool to_heads = true;
  /** Columns of all heads, part by part: queries, keys, values. A rank's heads are the same share
   * of each part. */
  std::vector<int64_t> parts;
};

/** Of own tokens (T, W), of all tokens (n_ranks T, W / n_ranks). */
template <class T>
struct AllToAllValues {
  T x, y;
  static constexpr std::array<std::string_view, 2> kNames = {"x", "y"};
};

template <class T>
struct AllToAllGrads {
  T dy, dx;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "dx"};
};

extern const OpDef kAllToAll;

}  // namespace ferry::ops
