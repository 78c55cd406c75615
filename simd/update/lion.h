#pragma once
// Private to simd/: Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms",
// algorithm 2): the sign of a mix of mean and gradient, decoupled decay. One state, m. Order of
// operations as in adamw.h:
//
//     g = float(grad) * grad_multiplier
//     d = g - m
//     c = fma(one_minus_beta1, d, m)
//     u = fma(lr, sign(c), decay * master)
//     master = master - u
//     m = fma(one_minus_beta2, d, m)
//     weights = round to nearest even of master
//
// sign(c) is c itself where that is zero or NaN.

#include "simd/update/factors.h"

namespace ferry::simd {

struct Lion {
  static constexpr int kStates = 1;  // m
  enum Scalar { one_minus_beta1, one_minus_beta2, lr, decay };
  static void set_scalars(const UpdateHyper& hyper, int64_t t, float* to);
  static void set_neutral(float* to);

  template <class Math, class Value>
  static FERRY_INLINE void apply(Value& p, Value (&states)[1], Value g, const Factors<Math>& f) {
    Value& m = states[0];
    const Value d = Math::sub(g, m);
    const Value c = Math::fma(f[one_minus_beta1], d, m);
    p = Math::sub(p, Math::fma(f[lr], Math::sign(c), Math::mul(f[decay], p)));
    m = Math::fma(f[one_minus_beta2], d, m);
  }
};

}  // namespace ferry::simd
