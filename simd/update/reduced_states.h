#pragma once
// Private to simd/: the bits of reduced states and of the split master, written once for one
// element, a vector of them and a GPU thread. Words are 32-bit integers, one a lane; Halves are of
// 16 bits (in the lower half of a scalar's 32), two a lane. Math names the few operations that
// xsimd has no operator for. adamw.h says what the formats promise.

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

/** bf16 in the upper half of what it returns: the 16 bits that go, plus 16 random ones, carry into
 * those that stay. Infinity and the canonical NaN have none that go. */
template <class Words>
FERRY_INLINE Words stochastic_bf16(Words bits, Words random16) {
  return bits + random16;
}
/** State s of an element with this random word, to be cut to bf16. */
template <class Math, class Words>
FERRY_INLINE Words bf16_state(Words bits, Words word, int s) {
  return stochastic_bf16(bits, s == 0 ? noise_for_m<Math, 16>(word) : noise_for_v<Math, 16>(word));
}
/** bf16 from both halves of an fp32, nearest even; of no NaN but the canonical one. Half a unit,
 * less one where the upper half is even, is added to the lower half and carries: the first bit of
 * their average, which holds 17 bits before it halves, and adds one itself. */
template <class Math, class Halves>
FERRY_INLINE Halves rounded_bf16(Halves upper, Halves lower) {
  const Halves added = (upper & Math::half(1u)) | Math::half(0x7ffeu);
  return upper + (Math::average(lower, added) >> 15);
}

/** The step of the noise of block8 states, whose blocks are updated whole: the words of a block's
 * first 16 elements are hashed, and each element 16 further on has a word this step further. Its
 * upper 20 bits, for m, go by the golden ratio of their range, its lower 19, for r, by sqrt(2) of
 * theirs, which spreads the walk evenly over both. */
inline constexpr uint32_t kNoiseStep = 0x9e33504fu;
inline constexpr int kNoiseLaneBits = 4;
inline constexpr int64_t kNoiseLanes = 1 << kNoiseLaneBits;
/** So many blocks have the words of the first of them: what one element meets from step to step is
 * random all the same, and a CPU makes the words once and reads them for the other blocks. */
inline constexpr int64_t kNoiseBlocks = 16;
inline constexpr int64_t kNoiseElements = kNoiseBlocks * kStateBlock;
/** The first of the elements with the same words, from which their counters go. */
FERRY_INLINE int64_t noise_start(int64_t element) {
  return element & ~(kNoiseElements - 1);
}
FERRY_INLINE uint32_t block_noise_word(int64_t element, uint32_t key) {
  const auto in_block = static_cast<uint32_t>(element & (kStateBlock - 1));
  const int64_t lane = in_block & static_cast<uint32_t>(kNoiseLanes - 1);
  return noise_word<ScalarMath>(noise_counter(noise_start(element) + lane, key)) +
         (in_block >> kNoiseLaneBits) * kNoiseStep;
}

// Block8 codes are the upper bits of an fp32, counted from the bits of the smallest value: exponent
// and fraction of a float are one number that grows with the value, so rounding to fewer fraction
// bits is adding and shifting, carries into the exponent included. Rounding needs no exponent of
// the block. What it leaves lies in the upper half of the fp32, and all that follows (as all before
// in the next step's decoding) is arithmetic of 16 bits, for vectors twice as many at once.

inline constexpr int kFractionDropped_m = 20, kFractionDropped_v = 19;  // of all 32 bits
inline constexpr int kHalfDropped_m = kFractionDropped_m - 16;          // of the upper half
inline constexpr int kHalfDropped_v = kFractionDropped_v - 16;
inline constexpr uint32_t kExponentRange = 15;

/** The noise added to the bits of m, or r: the upper half is then rounded but for dropping bits. */
template <class Math, class Words>
FERRY_INLINE Words block_noise_for_m(Words word) {
  return noise_for_m<Math, kFractionDropped_m>(word);
}
template <class Math, class Words>
FERRY_INLINE Words block_noise_for_root(Words word) {
  return noise_for_v<Math, kFractionDropped_v>(word);
}
/** The magnitude of a rounded m. */
template <class Math, class Halves>
FERRY_INLINE Halves magnitude(Halves rounded) {
  return rounded & Math::half(0x7fffu);
}

/** A block's exponents from the largest magnitude of what was rounded. Codes of m decode to normal
 * numbers; r, a root of an fp32, has them unless all are zero. */
FERRY_INLINE uint32_t block_exponent_m(uint32_t largest) {
  const uint32_t exponent = largest >> 7;
  return exponent > kExponentRange ? exponent : kExponentRange + 1;
}
FERRY_INLINE uint32_t block_exponent_root(uint32_t largest) {
  return largest >> 7;
}
/** The upper half of the fp32 that code 0 stands for (of m: would). A block of zeros has exponent 0
 * and, for r, values from 0 up. */
FERRY_INLINE uint32_t block_base(uint32_t exponent) {
  return ScalarMath::sub_floor(exponent, kExponentRange) << 7;
}

/** All of m's code but the sign. */
template <class Math, class Halves>
FERRY_INLINE Halves encode_magnitude(Halves magnitude, Halves base) {
  return Math::sub_floor(magnitude, base) >> kHalfDropped_m;
}
FERRY_INLINE uint8_t encode_m(uint32_t rounded, uint32_t base) {
  const uint32_t code = encode_magnitude<ScalarMath>(magnitude<ScalarMath>(rounded), base);
  return static_cast<uint8_t>(code | ((rounded >> 8) & 0x80u));
}
/** Decodes a code that was extended as a signed number. */
template <class Math, class Halves>
FERRY_INLINE Halves decode_m(Halves code, Halves base) {
  const Halves bits = (code << kHalfDropped_m) & Math::half(0x87f0u);
  return Math::where_any(bits, Math::half(0x7f0u), bits + base);
}

template <class Math, class Halves>
FERRY_INLINE Halves encode_root(Halves rounded, Halves base) {
  return Math::sub_floor(rounded, base) >> kHalfDropped_v;
}
template <class Math, class Halves>
FERRY_INLINE Halves decode_root(Halves code, Halves base) {
  return (code << kHalfDropped_v) + base;
}

// A split master's bits are (high << 16) + low with the lower half as a signed number, so its upper
// half is one less than `high` where that sign is set.
template <class Halves>
FERRY_INLINE Halves split_high(Halves upper, Halves low) {
  return upper + (low >> 15);
}
template <class Halves>
FERRY_INLINE Halves split_upper(Halves high, Halves low) {
  return high - (low >> 15);
}
FERRY_INLINE void split_bits(uint32_t bits, uint16_t* high, uint16_t* low) {
  const uint32_t lower = bits & 0xffffu;
  *high = static_cast<uint16_t>(split_high(bits >> 16, lower));
  *low = static_cast<uint16_t>(lower);
}
FERRY_INLINE uint32_t join_halves(uint16_t high, uint16_t low) {
  const uint32_t lower = low;
  return (split_upper(static_cast<uint32_t>(high), lower) << 16) | lower;
}

}  // namespace ferry::simd
