#pragma once
// Private to simd/: what one element goes through, written once for the scalar reference, the
// vector files (with a vector in place of a float) and the CUDA kernels. Every operation is named,
// so no compiler flag can fuse, split or reorder one. Kernels include it; callers include
// kernels.h.

#include <cstdint>
#include <cstring>

#include "simd/host_device.h"
#include "simd/kernels.h"
#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif
#ifdef __CUDA_FTZ
#error \
    "the numerics contract forbids flushing subnormals to zero: compile without -ftz=true and --use_fast_math"
#endif

namespace ferry::simd {

/** 16-bit elements as tags over their bits; fp32 elements are plain floats. */
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
struct NoWeights {};
template <class T>
inline constexpr bool is_none = false;
template <>
inline constexpr bool is_none<NoWeights> = true;

inline constexpr uint32_t kCanonicalNan = 0x7fc00000u;

FERRY_INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
FERRY_INLINE float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/** The arithmetic that the stated orders are written in; Lanes<Arch> is the same for vectors. */
struct ScalarMath {
  using Value = float;
#ifdef __CUDA_ARCH__
  static FERRY_INLINE float add(float a, float b) {
    return __fadd_rn(a, b);
  }
  static FERRY_INLINE float sub(float a, float b) {
    return __fsub_rn(a, b);
  }
  static FERRY_INLINE float mul(float a, float b) {
    return __fmul_rn(a, b);
  }
  static FERRY_INLINE float div(float a, float b) {
    return __fdiv_rn(a, b);
  }
  static FERRY_INLINE float sqrt(float a) {
    return __fsqrt_rn(a);
  }
  static FERRY_INLINE float fma(float a, float b, float c) {
    return __fmaf_rn(a, b, c);
  }
#else
  static FERRY_INLINE float add(float a, float b) {
    return a + b;
  }
  static FERRY_INLINE float sub(float a, float b) {
    return a - b;
  }
  static FERRY_INLINE float mul(float a, float b) {
    return a * b;
  }
  static FERRY_INLINE float div(float a, float b) {
    return a / b;
  }
  static FERRY_INLINE float sqrt(float a) {
    return __builtin_sqrtf(a);
  }
  // Without hardware FMA this calls the C library's, which is exact.
  static FERRY_INLINE float fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
  }
#endif
  static FERRY_INLINE float set(float x) {
    return x;
  }
  using Words = uint32_t;
  static FERRY_INLINE uint32_t word(uint32_t x) {
    return x;
  }
  static FERRY_INLINE uint32_t half(uint32_t x) {
    return x;
  }
  static FERRY_INLINE uint32_t max(uint32_t a, uint32_t b) {
    return a > b ? a : b;
  }
  /** a - b, but zero where that is negative. */
  static FERRY_INLINE uint32_t sub_floor(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
  }
  /** y where x has any bit of the mask, else zero. */
  static FERRY_INLINE uint32_t where_any(uint32_t x, uint32_t mask, uint32_t y) {
    return (x & mask) != 0 ? y : 0;
  }
  /** 1 or -1; zeros and NaNs stay. */
  static FERRY_INLINE float sign(float x) {
    return x > 0 ? 1.0f : x < 0 ? -1.0f : x;
  }
  static FERRY_INLINE bool any_nan(float x) {
    return x != x;
  }
  static FERRY_INLINE float canonical(float x) {
    return x != x ? float_of(kCanonicalNan) : x;
  }
};

FERRY_INLINE float to_float(float x) {
  return x;
}
FERRY_INLINE float to_float(Bfloat x) {
  return float_of(static_cast<uint32_t>(x.bits) << 16);
}
FERRY_INLINE float to_float(Half x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t magnitude = x.bits & 0x7fffu;
  if (magnitude > 0x7c00u) return float_of(sign | 0x7fc00000u | magnitude << 13);
#ifdef __CUDA_ARCH__
  return __half2float(__ushort_as_half(x.bits));
#else
  if (magnitude == 0x7c00u) return float_of(sign | 0x7f800000u);
  if (magnitude < 0x0400u)
    return float_of(sign | bits_of(static_cast<float>(static_cast<int>(magnitude)) * 0x1p-24f));
  return float_of(sign | ((magnitude << 13) + 0x38000000u));
#endif
}

FERRY_INLINE void from_float(float x, float* to) {
  *to = x;
}
FERRY_INLINE void from_float(float x, Bfloat* to) {
  const uint32_t bits = bits_of(x);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  to->bits = static_cast<uint16_t>(is_nan ? bits >> 16 | 0x40u : rounded);
}
FERRY_INLINE void from_float(float x, Half* to) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    to->bits = static_cast<uint16_t>(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    return;
  }
#ifdef __CUDA_ARCH__
  to->bits = __half_as_ushort(__float2half_rn(x));
#else
  uint32_t half;
  if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
    half = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14: 0.5 has the subnormals' spacing, so the sum
                                         // rounds there
    half = bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  }
  to->bits = static_cast<uint16_t>(sign | half);
#endif
}

template <class Math, class Value>
FERRY_INLINE Value add_element(Value sum, Value g) {
  const Value result = Math::add(sum, g);
  return Math::any_nan(result) ? Math::canonical(result) : result;
}

template <class Math, class Value>
FERRY_INLINE Value scale_element(Value x, Value scale) {
  const Value result = Math::mul(x, scale);
  return Math::any_nan(result) ? Math::canonical(result) : result;
}

}  // namespace ferry::simd
