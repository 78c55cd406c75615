#pragma once
// Private to simd/: the floating-point environment that every public entry sets, and the types that
// it takes.

#include <xmmintrin.h>

#include "src/base/dtype.h"

namespace ferry::simd {

/** Round to nearest, keep subnormals, for the life of the object: libraries switch these per
 * thread. */
class StandardArithmetic {
 public:
  StandardArithmetic() : saved_(_mm_getcsr()) {
    if ((saved_ & kControlBits) != kStandard) _mm_setcsr((saved_ & ~kControlBits) | kStandard);
  }
  ~StandardArithmetic() {
    if ((saved_ & kControlBits) != kStandard) _mm_setcsr(saved_);
  }
  StandardArithmetic(const StandardArithmetic&) = delete;
  StandardArithmetic& operator=(const StandardArithmetic&) = delete;

 private:
  // Flush to zero, rounding, exception masks, denormals are zero; the standard masks all
  // exceptions.
  static constexpr unsigned kControlBits = 0xffc0, kStandard = 0x1f80;
  unsigned saved_;
};

inline bool is_float(DType type) {
  return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}

}  // namespace ferry::simd
