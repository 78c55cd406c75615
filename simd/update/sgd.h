#pragma once
// Private to simd/: stochastic gradient descent as torch.optim.SGD defines it, without dampening:
// the decay is part of the gradient (L2), so it goes through momentum. With momentum one state, b.
// Order of operations as in adamw.h:
//
//     g = fma(weight_decay, master, float(grad) * grad_multiplier)
//     b = fma(momentum, b, g)                        without momentum: b = g
//     d = fma(of_b, b, of_g * g)                     without momentum: d = g
//     master = fma(-lr, d, master)
//     weights = round to nearest even of master
//
// of_b and of_g are 1 and 0, with Nesterov's momentum `momentum` and 1. torch begins with b = g,
// which is what a b of zero gives.

#include "simd/update/factors.h"

namespace ferry::simd {

template <bool has_momentum>
struct Sgd {
  static constexpr int kStates = has_momentum ? 1 : 0;  // b
  enum Scalar { minus_lr, weight_decay, momentum, of_b, of_g };
  static void set_scalars(const UpdateHyper& hyper, int64_t t, float* to);
  static void set_neutral(float* to);

  template <class Math, class Value>
  static FERRY_INLINE void apply(Value& p, Value (&states)[1], Value g, const Factors<Math>& f) {
    g = Math::fma(f[weight_decay], p, g);
    Value d = g;
    if constexpr (has_momentum) {
      Value& b = states[0];
      b = Math::fma(f[momentum], b, g);
      d = Math::fma(f[of_b], b, Math::mul(f[of_g], g));
    }
    p = Math::fma(f[minus_lr], d, p);
  }
};

}  // namespace ferry::simd
