#pragma once
// Private to simd/: the bits of reduced Adam states and of the split master, written once for one
// element, a vector of them and a GPU thread. Words are 32-bit integers, one a lane; Math names the
// few operations that xsimd has no operator for. kernels.h says what the formats promise.

#include "simd/elementwise.h"

namespace ferry::simd {

/** The master's upper halves as bf16 weights, the lower ones beside them: a weight type. */
struct Split {};
template <class Weight>
inline constexpr bool is_split = false;
template <>
inline constexpr bool is_split<Split> = true;
/** Weights in an array that holds nothing else. */
template <class Weight>
inline constexpr bool has_own_weights = !is_none<Weight> && !is_split<Weight>;

/** A walk over all 32-bit numbers by steps of the golden ratio, which the elements of a tensor
 * follow from the step's key on. */
inline constexpr uint32_t kNoiseStride = 0x9e3779b9u;
FERRY_INLINE uint32_t noise_counter(int64_t element, uint32_t key) {
  return static_cast<uint32_t>(element) * kNoiseStride + key;
}

/** The random word of a counter: one round of MurmurHash3's finaliser (Appleby 2011), a bijection.
 * As the keys of the steps are random, so is what one element meets from step to step; the elements
 * of one step need no more than not to follow each other. */
template <class Math, class Words>
FERRY_INLINE Words noise_word(Words counter) {
  return (counter ^ (counter >> 16)) * Math::word(0x85ebca6bu);
}
/** Bits for m from the top of a word, for v from its bottom; those that both take are the least of
 * m's. */
template <class Math, int kBits, class Words>
FERRY_INLINE Words noise_for_m(Words word) {
  return word >> (32 - kBits);
}
template <class Math, int kBits, class Words>
FERRY_INLINE Words noise_for_v(Words word) {
  return word & Math::word((1u << kBits) - 1);
}

/** bf16 bits: the 16 that go, plus 16 random ones, carry into those that stay. Infinity and the
 * canonical NaN have none that go. */
template <class Words>
FERRY_INLINE Words stochastic_bf16(Words bits, Words random16) {
  return (bits + random16) >> 16;
}

// Block8 codes are the upper bits of an fp32, counted from the bits of the smallest value: exponent
// and fraction of a float are one number that grows with the value, so rounding to fewer fraction
// bits is adding and shifting, carries into the exponent included.

inline constexpr int kFractionDropped_m = 20, kFractionDropped_v = 19;
inline constexpr uint32_t kExponentRange = 15;

/** A block's exponent from the largest magnitude in it: no code overflows after rounding up. */
template <int kDropped>
FERRY_INLINE uint32_t block_exponent(uint32_t largest_bits) {
  constexpr uint32_t kSmallest = kExponentRange + 1;  // codes decode to normal numbers
  const uint32_t exponent = (largest_bits + ((1u << kDropped) - 1)) >> 23;
  return exponent < kSmallest ? kSmallest : exponent;
}
/** The bits that code 0 would have. */
FERRY_INLINE uint32_t block_base(uint32_t exponent) {
  return (exponent - kExponentRange) << 23;
}

template <class Math, class Words>
FERRY_INLINE Words encode_m(Words bits, Words word, Words base) {
  const Words rounded =
      (bits & Math::word(0x7fffffffu)) + noise_for_m<Math, kFractionDropped_m>(word);
  const Words code = (Math::max(rounded, base) - base) >> kFractionDropped_m;
  return code | ((bits >> 24) & Math::word(0x80u));
}
template <class Math, class Words>
FERRY_INLINE Words decode_m(Words code, Words base) {
  const Words magnitude = code & Math::word(0x7fu);
  const Words bits = Math::where_nonzero(magnitude, (magnitude << kFractionDropped_m) + base);
  return bits | ((code & Math::word(0x80u)) << 24);
}

/** Of r = sqrt(v); only zero becomes code 0. */
template <class Math, class Words>
FERRY_INLINE Words encode_root(Words bits, Words word, Words base) {
  const Words rounded = bits + noise_for_v<Math, kFractionDropped_v>(word);
  const Words code = (Math::max(rounded, base) - base) >> kFractionDropped_v;
  return Math::max(code, Math::min(bits, Math::word(1u)));
}
template <class Math, class Words>
FERRY_INLINE Words decode_root(Words code, Words base) {
  return Math::where_nonzero(code, (code << kFractionDropped_v) + base);
}

template <class Math, class Words>
FERRY_INLINE Words split_high(Words bits) {
  return (bits + Math::word(0x8000u)) >> 16;
}
template <class Math, class Words>
FERRY_INLINE Words split_low(Words bits) {
  return bits & Math::word(0xffffu);
}
/** `low` as it was stored: 16 bits, of which the first is a sign. */
template <class Math, class Words>
FERRY_INLINE Words join_halves(Words high, Words low) {
  const Words borrow = (low & Math::word(0x8000u)) << 1;
  return (high << 16) + low - borrow;
}

}  // namespace ferry::simd
