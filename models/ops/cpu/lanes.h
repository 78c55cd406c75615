#pragma once
// Eight fp32 lanes for row_kernels_impl.cpp: loads with a zero-filled tail, sums in a stated order,
// exp and the normal distribution. g++'s vector types, so that baseline x86-64 and AVX2 compute the
// same operations in the same order.

#include <cstdint>
#include <cstring>

namespace ferry::ops::lanes {

inline constexpr int64_t kLanes = 8;
typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));

#define FERRY_LANES_INLINE static inline __attribute__((always_inline))

FERRY_LANES_INLINE Floats all(float x) {
  return Floats{x, x, x, x, x, x, x, x};
}
FERRY_LANES_INLINE Ints all(int32_t x) {
  return Ints{x, x, x, x, x, x, x, x};
}
FERRY_LANES_INLINE Ints bits_of(Floats x) {
  return reinterpret_cast<Ints&>(x);
}
FERRY_LANES_INLINE Floats floats_of(Ints x) {
  return reinterpret_cast<Floats&>(x);
}
/** mask (0 or -1 a lane) ? a : b. */
FERRY_LANES_INLINE Floats select(Ints mask, Floats a, Floats b) {
  return floats_of((bits_of(a) & mask) | (bits_of(b) & ~mask));
}
FERRY_LANES_INLINE Floats larger(Floats a, Floats b) {
  return select(a > b, a, b);
}

/** Eight elements, or at a row's end fewer: the rest reads as zero and is not stored. */
struct Whole {
  FERRY_LANES_INLINE Floats load(const float* from) {
    Floats x;
    memcpy(&x, from, sizeof x);
    return x;
  }
  FERRY_LANES_INLINE void store(float* to, Floats x) { memcpy(to, &x, sizeof x); }
  FERRY_LANES_INLINE Ints load_keep(const uint8_t* keep) {
    typedef uint8_t Bytes __attribute__((vector_size(8)));
    Bytes bytes;
    memcpy(&bytes, keep, sizeof bytes);
    return -__builtin_convertvector(bytes, Ints);
  }
  FERRY_LANES_INLINE Floats or_else(Floats x, float) { return x; }
};
struct Tail {
  int64_t n;
  __attribute__((always_inline)) Floats load(const float* from) const {
    float x[kLanes] = {};
    for (int64_t i = 0; i < n; i++)
      x[i] = from[i];
    return Whole::load(x);
  }
  __attribute__((always_inline)) void store(float* to, Floats x) const {
    for (int64_t i = 0; i < n; i++)
      to[i] = x[i];
  }
  __attribute__((always_inline)) Ints load_keep(const uint8_t* keep) const {
    uint8_t bytes[kLanes] = {};
    for (int64_t i = 0; i < n; i++)
      bytes[i] = keep[i];
    return Whole::load_keep(bytes);
  }
  /** Lanes past the row's end read as `rest`. */
  __attribute__((always_inline)) Floats or_else(Floats x, float rest) const {
    for (int64_t i = n; i < kLanes; i++)
      x[i] = rest;
    return x;
  }
};

/** body(access, first element) for each eight elements. */
template <typename Body>
__attribute__((always_inline)) inline void each(int64_t n, Body&& body) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    body(Whole{}, i);
  if (i < n) body(Tail{n - i}, i);
}

/** Lanes added pairwise: 0+4, 1+5, ...; then 0+2, 1+3; then 0+1. */
FERRY_LANES_INLINE float total(Floats x) {
  const float a = x[0] + x[4], b = x[1] + x[5], c = x[2] + x[6], d = x[3] + x[7];
  return (a + c) + (b + d);
}

/** Sums of kSums values per element: 4 running vectors of 8 lanes each, so that additions do not
 * wait for each other. body(access, i, Floats (&values)[kSums]); lanes past the end must be zero.
 */
template <int kSums, typename Body>
__attribute__((always_inline)) inline void sums(int64_t n, float (&result)[kSums], Body&& body) {
  constexpr int kChains = 4;
  Floats sum[kChains][kSums] = {};
  int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; chain++) {
      Floats values[kSums];
      body(Whole{}, i + chain * kLanes, values);
      for (int s = 0; s < kSums; s++)
        sum[chain][s] += values[s];
    }
  }
  for (; i < n; i += kLanes) {
    Floats values[kSums];
    if (i + kLanes <= n) {
      body(Whole{}, i, values);
    } else {
      body(Tail{n - i}, i, values);
    }
    for (int s = 0; s < kSums; s++)
      sum[0][s] += values[s];
  }
  for (int s = 0; s < kSums; s++)
    result[s] = total((sum[0][s] + sum[2][s]) + (sum[1][s] + sum[3][s]));
}

/** exp(x), relative error below 2e-7 for results that are normal numbers; smaller ones become 0,
 * larger ones infinity; NaN stays. */
FERRY_LANES_INLINE Floats exp(Floats x) {
  // x = n ln 2 + r with |r| <= ln 2 / 2. ln 2 in two parts, the first with few bits, so that n
  // times it is exact. The polynomial is a minimax fit of ours to exp on that range (2e-8
  // relative).
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  const Floats shifted = x * all(1.44269504f) + all(kRound);
  const Floats n = shifted - all(kRound);
  const Floats r = (x - n * all(0.693359375f)) - n * all(-2.12194440e-4f);
  Floats p = all(0.00138358015101403f);
  p = p * r + all(0.00837564468383789f);
  p = p * r + all(0.04166828840970993f);
  p = p * r + all(0.16666410863399506f);
  p = p * r + all(0.49999991059303284f);
  p = p * r + all(1.0f);
  p = p * r + all(1.0f);
  // 2^n as the exponent bits; n may be 128, so in two halves.
  const Ints exponent = bits_of(shifted) - bits_of(all(kRound));
  const Ints half = exponent >> 1;
  p = p * floats_of((half + all(127)) << 23) * floats_of((exponent - half + all(127)) << 23);
  p = select(x < all(-87.33f), all(0.0f), p);
  return select(x > all(88.7228f), all(__builtin_inff()), p);
}

/** Cosine and sine of x, |x| < 2^20, to 1e-10 and then rounded: in double, of one element, since
 * the reduction needs more bits than fp32 has. The compiler takes several at a time. */
FERRY_LANES_INLINE void cos_sin(float x, float* cos, float* sin) {
  // x = n pi / 2 + r with |r| <= pi / 4; pi / 2 in two parts, the first with 33 bits, so that n
  // times it is exact. Taylor's series.
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: leaves an integer in the low bits
  const double shifted = static_cast<double>(x) * 0.63661977236758134 + kRound;
  const double n = shifted - kRound;
  const double r =
      (static_cast<double>(x) - n * 1.57079632673412561417e+00) - n * 6.07710050650619224932e-11;
  const double z = r * r;
  double s = -1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = s * z * r + r;
  double c = 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  c = c * z + 1.0;
  // Quarter turns: odd ones swap the two, and each half of the circle has its signs.
  int64_t quarter;
  memcpy(&quarter, &shifted, sizeof quarter);
  const bool odd = (quarter & 1) != 0;
  const double a = odd ? s : c, b = odd ? c : s;
  *cos = static_cast<float>(((quarter + 1) & 2) != 0 ? -a : a);
  *sin = static_cast<float>((quarter & 2) != 0 ? -b : b);
}

/** The standard normal distribution at x: cdf and density. */
struct Normal {
  Floats cdf;
  Floats density;
};
FERRY_LANES_INLINE Normal normal(Floats x) {
  // cdf(-u) = exp(-u^2 / 2) t q(t), t = 1 / (1 + 0.3 u / sqrt 2); q is a minimax fit of ours to
  // erfc(z) exp(z^2) / (2 t) (6e-8 relative over u in [0, 13]).
  const Floats u = floats_of(bits_of(x) & all(0x7fffffff));
  const Floats t = all(1.0f) / (all(1.0f) + all(0.3f * 0.70710678f) * u);
  Floats q = all(0.5f * -0.12945792078971863f);
  q = q * t + all(0.5f * 0.485221803188324f);
  q = q * t + all(0.5f * -0.511509120464325f);
  q = q * t + all(0.5f * 0.5467514991760254f);
  q = q * t + all(0.5f * -0.09390579909086227f);
  q = q * t + all(0.5f * 0.2145683318376541f);
  q = q * t + all(0.5f * 0.14844375848770142f);
  q = q * t + all(0.5f * 0.17069824039936066f);
  q = q * t + all(0.5f * 0.1691891849040985f);
  const Floats e = exp(all(-0.5f) * x * x);
  const Floats tail = q * t * e;
  return {select(x < all(0.0f), tail, all(1.0f) - tail), all(0.3989422804f) * e};
}

}  // namespace ferry::ops::lanes
