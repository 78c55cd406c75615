#pragma once
// y = tanh(x).
#include "models/core/operation.h"

namespace ferry::ops {

template <class T>
struct TanhValues {
  T x, y;
  static constexpr std::array<std::string_view, 2> kNames = {"x", "y"};
};

/** dx may be dy. */
template <class T>
struct TanhGrads {
  T dy, y, dx;
  static constexpr std::array<std::string_view, 3> kNames = {"dy", "y", "dx"};
};

extern const OpDef kTanh;

}  // namespace ferry::ops
