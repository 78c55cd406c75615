#pragma once
// y = factor * (x H + bias) with a parameterised hypercomplex product (Zhang et al. 2021): H is the
// sum over i < n of the Kronecker product of rule_i (n, n) and left_i right_i. Torch-free.
#include "models/core/operation.h"

namespace ferry::ops {

struct PhmAttributes {
  float factor = 1;
  int64_t n = 1;
};

template <class T>
struct PhmValues {
  T x, y;
  static constexpr std::array<std::string_view, 2> kNames = {"x", "y"};
};

template <class T>
struct PhmGrads {
  T dy, x, dx;
  static constexpr std::array<std::string_view, 3> kNames = {"dy", "x", "dx"};
};

/** rule (n, n n), left (n, in / n), right (n, out / n), bias (out) or absent. */
template <class T>
struct PhmParams {
  T rule, left, right, bias;
  static constexpr std::array<std::string_view, 4> kNames = {"rule", "left", "right", "bias"};
};

extern const OpDef kPhm;

}  // namespace ferry::ops
