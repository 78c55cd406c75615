#pragma once
// LayerNorm, alone or of a sum that it makes.
#include "models/core/operation.h"

namespace ferry::ops {

struct NormAttributes {
  float eps = 0;
  float dropout = 0;  ///< probability; of the result, or of what is added to the residual
  int random = 0;     ///< RandomKey::of takes it
};

/** The tensors that all norms keep. */
template <class T>
struct NormStates {
  T mean, rstd;
  static constexpr std::array<std::string_view, 2> kNames = {"mean", "rstd"};
};

/** Of the norm alone. */
template <class T>
struct LayerNormParams {
  T weight, bias;
  static constexpr std::array<std::string_view, 2> kNames = {"weight", "bias"};
};

/** y = dropout(LayerNorm(z)); a remake has the same operands. */
template <class T>
struct NormValues {
  T z, y;
  static constexpr std::array<std::string_view, 2> kNames = {"z", "y"};
};

/** `sum`: a part of dz that is there already. */
template <class T>
struct NormGrads {
  T dy, z, sum, dz;
  static constexpr std::array<std::string_view, 4> kNames = {"dy", "z", "sum", "dz"};
};

template <class T>
struct ResidualNormParams {
  T weight, bias, bias_of_a;
  static constexpr std::array<std::string_view, 3> kNames = {"weight", "bias", "bias_of_a"};
};

/** z = dropout(a + bias_of_a) + residual, y = LayerNorm(z). */
template <class T>
struct ResidualNormValues {
  T a, residual, z, y;
  static constexpr std::array<std::string_view, 4> kNames = {"a", "residual", "z", "y"};
};

/** `d_sum`: the gradient of z from its other readers. dz is the residual's gradient. */
template <class T>
struct ResidualNormGrads {
  T dy, z, d_sum, dz, da;
  static constexpr std::array<std::string_view, 5> kNames = {"dy", "z", "d_sum", "dz", "da"};
};

extern const OpDef kNorm, kResidualNorm;

}  // namespace ferry::ops
