#pragma once
// Ranks that share tokens exchange them for heads of attention, and back.
#include "models/core/operation.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

struct AllToAllAttributes {
  int n_ranks = 1;
  /** From own tokens with all heads to all tokens with own heads; false: back. */
  bool to_heads = true;
  /** Queries, keys, values. */
  std::vector<SharedHeads> parts;

  /** Columns of a rank's heads. */
  int64_t n_own() const {
    int64_t n = 0;
    for (const SharedHeads& part : parts)
      n += part.n_own(n_ranks);
    return n;
  }
};

/** A tensor of own tokens is (T, W), and one of all tokens (n_ranks T, n_own()). The gradient of a
 * head that several ranks have is the sum of their gradients. */
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
