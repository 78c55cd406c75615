#pragma once
// Private to simd/: the numbers of a step as the kernels hold them.

#include "simd/elementwise.h"

namespace ferry::simd {

/** UpdateStep, each number once per lane; a rule says what each of the scalars is. */
template <class Math>
struct Factors {
  typename Math::Value grad_multiplier, scalars[kScalars_max];

  explicit FERRY_INLINE Factors(const UpdateStep& step)
      : grad_multiplier(Math::set(step.grad_multiplier)) {
    for (int i = 0; i < kScalars_max; ++i)
      scalars[i] = Math::set(step.scalars[i]);
  }
  FERRY_INLINE typename Math::Value operator[](int scalar) const { return scalars[scalar]; }
};

}  // namespace ferry::simd
