#pragma once
// y = factor * (x w^T + bias) + residual.
#include "models/core/operation.h"

namespace ferry::ops {

/** A rank's part of a dimension of the weight, where ranks share the layer. The first rank has n
 * from `first` on, and the next rank has the next n, or the same n where n_sharers ranks have them.
 */
struct WeightPart {
  int64_t first = 0;
  int64_t n = 0;  ///< 0: all
  int n_sharers = 1;
};

struct LinearAttributes {
  /** The attention behind it sums the gradient of its bias. */
  bool sums_bias = false;
  float factor = 1;
  /** With a part of the rows each rank has these columns of y and elements of the bias. With a part
   * of the columns y is a part of a sum over the ranks, and the first rank adds the bias. */
  WeightPart rows = {}, columns = {};
  /** Columns of y whose bias has no gradient: keys of attention, where `attention` does not sum it.
   */
  WeightPart keys = {};
};

/** `residual` may be absent. */
template <class T>
struct LinearValues {
  T x, residual, y;
  static constexpr std::array<std::string_view, 3> kNames = {"x", "residual", "y"};
};

/** `sum`: a part of dx that is there already; it may lie in the same place. */
template <class T>
struct LinearGrads {
  T dy, dx, sum;
  static constexpr std::array<std::string_view, 3> kNames = {"dy", "dx", "sum"};
};

/** Part::params: the gradients of weight and bias. Without x the bias alone gets its gradient. */
template <class T>
struct LinearWeightGrads {
  T dy, x;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "x"};
};

/** `bias` may be absent. */
template <class T>
struct LinearParams {
  T weight, bias;
  static constexpr std::array<std::string_view, 2> kNames = {"weight", "bias"};
};

extern const OpDef kLinear;

}  // namespace ferry::ops
