#pragma once
// Private to simd/: AdamW (torch.optim.AdamW: decoupled decay, eps outside the corrected root).
// Order of operations, all fp32, each rounded to nearest even; fma(a, b, c) = a * b + c rounded
// once:
//
//     g = float(grad) * grad_multiplier
//     m = fma(one_minus_beta1, g - m, m)
//     v = fma(one_minus_beta2 * g, g, beta2 * v)
//     r = sqrt(v)
//     d = fma(r, correction2, eps)
//     u = fma(step_size, m / d, decay * master)
//     master = master - u
//     weights = round to nearest even of master
//
// The decay joins the update before the one rounding against master: master * (1 - lr *
// weight_decay) with a factor rounded to fp32 would miss small decays by several percent.
//
// Reduced states change what m and v are when the next step reads them, nothing else: the step
// itself uses the fp32 m and v above. They round stochastically, up with the probability that makes
// the mean of what is kept exact (of r in block8, so that over a long run v's is some percent
// above): rounded to nearest, a v that changes by 1 - beta2 = 0.1 % a step would never move by half
// of a bf16 step (0.2 to 0.4 %). The random word of an element is a function of noise_key and its
// index modulo 2^32 (noise_word() and block_noise_word() in reduced_states.h); in block8, 16 blocks
// in a row have the words of the first.
//
// bf16: |m' - m| < 2^-7 |m| and |v' - v| < 2^-7 v (below 2^-126: 2^-133).
//
// block8: m as a sign and 7 bits, r in place of v as 8 bits: codes c of
//
//     m' = sign * (1 + c % 8 / 8) * 2^(E - 15 + c / 8), or 0 for c = 0
//     r' = (1 + c % 16 / 16) * 2^(E - 15 + c / 16)
//
// with integer division, and E the exponent of the block's largest value once that is rounded (of
// m's no less than -111). |m' - m| < 2^-3 |m| and |r' - r| < 2^-4 r, but at the end of the range:
// below 2^-14 of the largest, or 1.125 x 2^-126, an m may become zero; and an r, zero too, that is
// less than code 0 stands for becomes that, at most 2^-14 of the largest. So |m'| / r' < 1.2 |m| /
// r everywhere: no rounding makes an update blow up. A block whose r are all zero keeps them. An
// infinite or NaN m, or r, takes the others of its block to zero, or to 2^113; runs skip a step
// with such gradients.

#include "simd/update/factors.h"

namespace ferry::simd {

struct Adamw {
  static constexpr int kStates = 2;  // m, v
  enum Scalar {
    one_minus_beta1,
    beta2,
    one_minus_beta2,
    correction2,  // 1 / sqrt(1 - beta2^t)
    eps,
    step_size,  // lr / (1 - beta1^t)
    decay,      // lr * weight_decay
  };
  /** beta^t by repeated squaring, so every C library gives the same bits. */
  static void set_scalars(const UpdateHyper& hyper, int64_t t, float* to);
  static void set_neutral(float* to);

  /** The order above from m on; root = sqrt(v). NaNs are not yet canonical. */
  template <class Math, class Value>
  static FERRY_INLINE void step(
      Value& p, Value& m, Value& v, Value& root, Value g, const Factors<Math>& f) {
    m = Math::fma(f[one_minus_beta1], Math::sub(g, m), m);
    v = Math::fma(Math::mul(f[one_minus_beta2], g), g, Math::mul(f[beta2], v));
    root = Math::sqrt(v);
    const Value denominator = Math::fma(root, f[correction2], f[eps]);
    const Value change = Math::fma(f[step_size], Math::div(m, denominator), Math::mul(f[decay], p));
    p = Math::sub(p, change);
  }
  template <class Math, class Value>
  static FERRY_INLINE void apply(Value& p, Value (&states)[2], Value g, const Factors<Math>& f) {
    Value root;
    step<Math>(p, states[0], states[1], root, g, f);
  }
};

/** The same with r in place of v as the state, as 8-bit states have it. */
struct AdamwRoots : Adamw {
  template <class Math, class Value>
  static FERRY_INLINE void apply(Value& p, Value (&states)[2], Value g, const Factors<Math>& f) {
    Value v = Math::mul(states[1], states[1]);
    step<Math>(p, states[0], v, states[1], g, f);
  }
};

}  // namespace ferry::simd
