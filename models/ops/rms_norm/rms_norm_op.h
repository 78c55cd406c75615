#pragma once
// RMSNorm, alone or of a sum that it makes.
#include "models/core/operation.h"

namespace ferry::ops {

struct RmsNormAttributes {
  float eps = 0;
  float weight_offset = 0;  ///< weights count from it
};

template <class T>
struct RmsNormStates {
  T rstd;
  static constexpr std::array<std::string_view, 1> kNames = {"rstd"};
};

template <class T>
struct RmsNormParams {
  T weight;
  static constexpr std::array<std::string_view, 1> kNames = {"weight"};
};

/** z = a + residual, y = RMSNorm(z); alone y = RMSNorm(a), without residual and z. */
template <class T>
struct RmsNormValues {
  T a, residual, z, y;
  static constexpr std::array<std::string_view, 4> kNames = {"a", "residual", "z", "y"};
};

/** z is a where there is no residual. */
template <class T>
struct RmsNormRemake {
  T z, y;
  static constexpr std::array<std::string_view, 2> kNames = {"z", "y"};
};

/** `sum`: what is there of dz, from other readers of z. */
template <class T>
struct RmsNormGrads {
  T dy, z, sum, dz;
  static constexpr std::array<std::string_view, 4> kNames = {"dy", "z", "sum", "dz"};
};

extern const OpDef kRmsNorm;

}  // namespace ferry::ops
