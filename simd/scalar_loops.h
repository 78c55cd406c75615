#pragma once
// Private to simd/: every kernel as a plain loop over elements [begin, n). kernels_scalar.cpp is
// made of these alone (the reference of the tests); the vector files finish their heads and tails
// with them.

#include "simd/elementwise.h"
#include "simd/philox.h"

namespace ferry::simd {

/** Calls f with a null pointer to the element type of a gradient or activation. */
template <class F>
FERRY_INLINE void with_element_type(DType type, F f) {
  switch (type) {
    case DType::f16:
      f(static_cast<Half*>(nullptr));
      break;
    case DType::bf16:
      f(static_cast<Bfloat*>(nullptr));
      break;
    default:
      f(static_cast<float*>(nullptr));
      break;
  }
}

template <class To, class From>
FERRY_INLINE void convert_loop(To* to, const From* from, int64_t begin, int64_t n) {
  for (int64_t i = begin; i < n; ++i)
    from_float(to_float(from[i]), to + i);
}

template <class Grad>
FERRY_INLINE void accumulate_loop(float* sum, const Grad* grad, int64_t begin, int64_t n) {
  for (int64_t i = begin; i < n; ++i)
    sum[i] = add_element<ScalarMath>(sum[i], to_float(grad[i]));
}

/** Adds the squares of one chunk's elements [begin, n) to its lanes. */
template <class Grad>
FERRY_INLINE void square_loop(double* lanes, const Grad* grad, int64_t begin, int64_t n) {
  for (int64_t i = begin; i < n; ++i) {
    const double g = static_cast<double>(to_float(grad[i]));
    lanes[i % kNormLanes] += g * g;
  }
}

FERRY_INLINE double fold_lanes(double* lanes) {
  for (int64_t half = kNormLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  return lanes[0] != lanes[0] ? __builtin_nan("") : lanes[0];
}

FERRY_INLINE void dropout_mask_loop(uint8_t* keep,
                                    int64_t begin,
                                    int64_t end,
                                    uint64_t first_element,
                                    uint64_t key,
                                    uint32_t threshold) {
  for (int64_t i = begin; i < end;) {
    const uint64_t element = first_element + static_cast<uint64_t>(i);
    const PhiloxWords words = philox(element / 4, key);
    for (uint64_t lane = element % 4; lane < 4 && i < end; ++lane, ++i)
      keep[i] = words.word[lane] >= threshold;
  }
}

template <class T>
FERRY_INLINE void dropout_apply_loop(
    T* out, const T* in, const uint8_t* keep, int64_t begin, int64_t n, float scale) {
  for (int64_t i = begin; i < n; ++i)
    from_float(keep[i] != 0 ? scale_element<ScalarMath>(to_float(in[i]), scale) : 0.0f, out + i);
}

}  // namespace ferry::simd
