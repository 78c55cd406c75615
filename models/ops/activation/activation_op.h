#pragma once
// f(a + bias), and in between h = a + bias.
#include "models/core/operation.h"
#include "models/ops/activation_kind.h"

namespace ferry::ops {

struct ActivationAttributes {
  Activation kind{};
};

/** `bias` may be absent. */
template <class T>
struct ActivationParams {
  T bias;
  static constexpr std::array<std::string_view, 1> kNames = {"bias"};
};

template <class T>
struct ActivationValues {
  T a, h, g;
  static constexpr std::array<std::string_view, 3> kNames = {"a", "h", "g"};
};

/** `g`: the activation made again, where somebody waits for it. dh may be dg. */
template <class T>
struct ActivationGrads {
  T dg, h, dh, g;
  static constexpr std::array<std::string_view, 4> kNames = {"dg", "h", "dh", "g"};
};

extern const OpDef kActivation;

}  // namespace ferry::ops
