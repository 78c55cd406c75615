#pragma once
// Dropout, alone or of a + bias before a residual is added.
#include "models/core/operation.h"

namespace ferry::ops {

struct DropoutAttributes {
  float dropout = 0;  ///< probability; 0: a copy
  int random = 0;     ///< RandomKey::of takes it
};

/** y = dropout(x); a remake has the same operands. */
template <class T>
struct DropoutValues {
  T x, y;
  static constexpr std::array<std::string_view, 2> kNames = {"x", "y"};
};

template <class T>
struct DropoutGrads {
  T dy, dx;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "dx"};
};

/** `bias` may be absent. */
template <class T>
struct DropoutResidualParams {
  T bias;
  static constexpr std::array<std::string_view, 1> kNames = {"bias"};
};

/** y = dropout(a + bias) + residual. */
template <class T>
struct DropoutResidualValues {
  T a, residual, y;
  static constexpr std::array<std::string_view, 3> kNames = {"a", "residual", "y"};
};

template <class T>
struct DropoutResidualGrads {
  T dy, da;
  static constexpr std::array<std::string_view, 2> kNames = {"dy", "da"};
};

extern const OpDef kDropout, kDropoutResidual;

}  // namespace ferry::ops
