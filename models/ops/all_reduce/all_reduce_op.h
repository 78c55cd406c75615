#pragma once
// Sums over the ranks that share layers.
#include "models/core/operation.h"

namespace ferry::ops {

/** y = the sum of all ranks' x, in the order of ranks. Its backward passes the gradient on, which
 * is the same on all ranks. */
template <class T>
struct AllReduceValues {
  T x, y;
  static constexpr std::array<std::string_view, 2> kNames = {"x", "y"};
};

template <class T>
struct AllReduceGrads {
  T dy, dx;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "dx"};
};

/** kAllReduceGrad: y = x, and dx is the sum of all ranks' dy. */
extern const OpDef kAllReduce, kAllReduceGrad;

}  // namespace ferry::ops
