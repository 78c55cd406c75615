#pragma once
// Private to simd/: arrays of any type as pairs of float vectors, which the vector kernels of
// updates go by, since the 16-bit halves of a pair fill a vector. Included by kernels_impl.h, under
// its rules.

#include "simd/lanes.h"
#include "simd/update/reduced_states.h"

namespace ferry::simd {

/** Which of a pair's consecutive elements are in its first vector. */
enum class PairOrder {
  halves,  ///< the first half
  /** The even ones. A 32-bit word of a 16-bit array holds an even element and the odd one after it,
   * so that a shift and a mask make floats of them and nothing is moved between lanes: cheaper
   * where most arrays are of 16 bits or fewer. */
  parity
};

template <class Arch, PairOrder order>
struct Pairs {
  using L = Lanes<Arch>;
  using Value = typename L::Value;
  using Words = typename L::Words;
  using Halves = typename L::Halves;
  static constexpr int64_t kWidth = L::kWidth;
  static constexpr bool kParity = order == PairOrder::parity;

  /** Floats from their upper halves; the lower ones are zero. */
  static FERRY_INLINE void widen(Halves upper, Value (&x)[2]) {
    Words first, second;
    if constexpr (kParity) {
      const Words both = L::as_words(upper);
      first = both << 16, second = both & Words(0xffff0000u);
    } else {
      L::widen(upper, first, second);
    }
    x[0] = L::from_bits(first), x[1] = L::from_bits(second);
  }
  /** Floats from both halves. */
  static FERRY_INLINE void join(Halves upper, Halves lower, Value (&x)[2]) {
    Words first, second;
    if constexpr (kParity) {
      const Words u = L::as_words(upper), l = L::as_words(lower);
      first = L::lower_pairs(l, u), second = L::upper_pairs(l, u);
    } else {
      L::join(upper, lower, first, second);
    }
    x[0] = L::from_bits(first), x[1] = L::from_bits(second);
  }
  static FERRY_INLINE Halves upper_halves(Words first, Words second) {
    if constexpr (kParity) {
      return L::as_halves(L::upper_pairs(first, second));
    } else {
      return L::upper_halves(first, second);
    }
  }
  static FERRY_INLINE Halves lower_halves(Words first, Words second) {
    if constexpr (kParity) {
      return L::as_halves(L::lower_pairs(first, second));
    } else {
      return L::lower_halves(first, second);
    }
  }
  /** The offsets within a pair of the elements of its first vector, or of its second. */
  static FERRY_INLINE Words offsets(int vector) {
    const auto k = static_cast<uint32_t>(vector);
    return kParity ? L::iota() * Words(2u) + Words(k)
                   : L::iota() + Words(k * static_cast<uint32_t>(kWidth));
  }

  /** T: float or Half. */
  template <class T>
  static FERRY_INLINE void load(const T* from, Value (&x)[2]) {
    x[0] = L::load(from), x[1] = L::load(from + kWidth);
    if constexpr (kParity) L::deinterleave(x[0], x[1]);
  }
  static FERRY_INLINE void load(const Bfloat* from, Value (&x)[2]) {
    widen(L::load_halves(&from->bits), x);
  }
  /** kStream: past the caches. */
  template <bool kStream = false, class T>
  static FERRY_INLINE void store(T* to, const Value (&x)[2]) {
    Value first = x[0], second = x[1];
    if constexpr (kParity) L::interleave(first, second);
    if constexpr (kStream) {
      L::stream(to, first), L::stream(to + kWidth, second);
    } else {
      L::store(to, first), L::store(to + kWidth, second);
    }
  }
  /** Rounded to nearest even; no NaN but the canonical one. */
  template <bool kStream = false>
  static FERRY_INLINE void store(Bfloat* to, const Value (&x)[2]) {
    const Words first = L::bits(x[0]), second = L::bits(x[1]);
    const Halves rounded =
        rounded_bf16<L>(upper_halves(first, second), lower_halves(first, second));
    if constexpr (kStream) {
      L::stream_halves(&to->bits, rounded);
    } else {
      L::store_halves(&to->bits, rounded);
    }
  }
};

}  // namespace ferry::simd
