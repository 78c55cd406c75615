#pragma once
// y = factor * (x w^T + bias) + residual.
#include "models/core/operation.h"

namespace ferry::ops {

struct LinearAttributes {
  /** The attention behind it sums the gradient of its bias. */
  bool sums_bias = false;
  float factor = 1;
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

/** Part::params: the gradients of weight and bias. */
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
