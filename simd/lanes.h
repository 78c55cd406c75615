#pragma once
// Private to simd/: one vector of floats per ISA. xsimd gives load, store and plain arithmetic; the
// operations that xsimd 8.1 lacks are intrinsics here: 16-bit conversions, streaming stores,
// widening - and, for AVX-512, fma, since xsimd::fma falls back to an unfused a * b + c there.

#include <immintrin.h>

#include <xsimd/xsimd.hpp>

#include "simd/elementwise.h"

namespace ferry::simd {

template <class Arch>
struct Lanes;

/** The operations that are the same for both ISAs. Self adds fma, any_nan, canonical and the
 * conversions. */
template <class Arch>
struct LanesBase {
  using Value = xsimd::batch<float, Arch>;
  using Doubles = xsimd::batch<double, Arch>;
  using Words = xsimd::batch<uint32_t, Arch>;
  using Halves = xsimd::batch<uint16_t, Arch>;  // of two vectors of elements
  static constexpr int64_t kWidth = static_cast<int64_t>(Value::size);

  static FERRY_INLINE Value set(float x) { return Value(x); }
  static FERRY_INLINE Words word(uint32_t x) { return Words(x); }
  static FERRY_INLINE Halves half(uint32_t x) { return Halves(static_cast<uint16_t>(x)); }
  static FERRY_INLINE Value add(Value a, Value b) { return a + b; }
  static FERRY_INLINE Value sub(Value a, Value b) { return a - b; }
  static FERRY_INLINE Value mul(Value a, Value b) { return a * b; }
  static FERRY_INLINE Value div(Value a, Value b) { return a / b; }
  static FERRY_INLINE Value sqrt(Value a) { return xsimd::sqrt(a); }
  static FERRY_INLINE Value load(const float* from) { return Value::load_unaligned(from); }
  static FERRY_INLINE void store(float* to, Value x) { x.store_unaligned(to); }
  /** The same bits. */
  static FERRY_INLINE Words as_words(Halves x) {
    return Words(static_cast<typename Words::register_type>(x));
  }
  static FERRY_INLINE Halves as_halves(Words x) {
    return Halves(static_cast<typename Halves::register_type>(x));
  }

 protected:
  static FERRY_INLINE uint32_t largest_of_8(__m128i halves) {
    const __m128i inverse = _mm_xor_si128(halves, _mm_set1_epi32(-1));
    return ~static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_minpos_epu16(inverse))) & 0xffffu;
  }
};

#ifndef __AVX512F__

template <>
struct Lanes<xsimd::fma3<xsimd::avx2>> : LanesBase<xsimd::fma3<xsimd::avx2>> {
  using LanesBase::load;
  using LanesBase::store;

  static FERRY_INLINE Value fma(Value a, Value b, Value c) { return _mm256_fmadd_ps(a, b, c); }
  static FERRY_INLINE Doubles fma(Doubles a, Doubles b, Doubles c) {
    return _mm256_fmadd_pd(a, b, c);
  }
  static FERRY_INLINE bool any_nan(Value x) { return any_nan(x, x); }
  /** In either. */
  static FERRY_INLINE bool any_nan(Value x, Value y) {
    return _mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q)) != 0;
  }
  /** 1 or -1; zeros and NaNs stay. */
  static FERRY_INLINE Value sign(Value x) {
    const __m256 minus = _mm256_set1_ps(-0.0f);
    const __m256 one = _mm256_or_ps(_mm256_and_ps(x, minus), _mm256_set1_ps(1.0f));
    return _mm256_blendv_ps(x, one, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  }
  static FERRY_INLINE Value canonical(Value x) {
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(kCanonicalNan)));
    return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }

  static FERRY_INLINE Value load(const Half* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static FERRY_INLINE Value load(const Bfloat* from) {
    const __m256i bits =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
  }
  static FERRY_INLINE __m128i narrow(Value x, Half) {
    return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  }
  static FERRY_INLINE __m128i narrow(Value x, Bfloat) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i high = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i narrowed = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, is_nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(narrowed),
                            _mm256_extracti128_si256(narrowed, 1));
  }
  template <class Narrow>
  static FERRY_INLINE void store(Narrow* to, Value x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), narrow(x, Narrow{}));
  }
  static FERRY_INLINE void stream(float* to, Value x) { _mm256_stream_ps(to, x); }
  template <class Narrow>
  static FERRY_INLINE void stream(Narrow* to, Value x) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), narrow(x, Narrow{}));
  }

  static FERRY_INLINE Words bits(Value x) { return _mm256_castps_si256(x); }
  static FERRY_INLINE Value from_bits(Words x) { return _mm256_castsi256_ps(x); }
  static FERRY_INLINE Halves max(Halves a, Halves b) { return _mm256_max_epu16(a, b); }
  static FERRY_INLINE Halves sub_floor(Halves a, Halves b) { return _mm256_subs_epu16(a, b); }
  static FERRY_INLINE Halves average(Halves a, Halves b) { return _mm256_avg_epu16(a, b); }
  /** y where x has any bit of the mask, else zero. */
  static FERRY_INLINE Halves where_any(Halves x, Halves mask, Halves y) {
    const __m256i none = _mm256_cmpeq_epi16(_mm256_and_si256(x, mask), _mm256_setzero_si256());
    return _mm256_andnot_si256(none, y);
  }
  static FERRY_INLINE uint32_t largest(Halves x) {
    return largest_of_8(_mm_max_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1)));
  }
  static FERRY_INLINE Halves load_halves(const uint16_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  }
  static FERRY_INLINE Halves load_halves(const uint8_t* from) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static FERRY_INLINE Halves load_signed_halves(const uint8_t* from) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  static FERRY_INLINE void store_halves(uint16_t* to, Halves x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x);
  }
  static FERRY_INLINE void stream_halves(uint16_t* to, Halves x) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), x);
  }
  /** Words of two halves: the lower halves, or the upper ones, of x below those of y. */
  static FERRY_INLINE Words lower_pairs(Words x, Words y) {
    return _mm256_blend_epi16(x, _mm256_slli_epi32(y, 16), 0xaa);
  }
  static FERRY_INLINE Words upper_pairs(Words x, Words y) {
    return _mm256_blend_epi16(_mm256_srli_epi32(x, 16), y, 0xaa);
  }
  /** Two vectors as bytes, which hold them. */
  static FERRY_INLINE void store_bytes(uint8_t* to, Halves first, Halves second) {
    store_packed(to, _mm256_packus_epi16(first, second));
  }
  /** With the sign of `signs` as the first bit of each. */
  static FERRY_INLINE void store_signed_bytes(
      uint8_t* to, Halves first, Halves second, Halves first_signs, Halves second_signs) {
    const __m256i signs = _mm256_and_si256(_mm256_packs_epi16(first_signs, second_signs),
                                           _mm256_set1_epi8(static_cast<char>(0x80)));
    store_packed(to, _mm256_or_si256(_mm256_packus_epi16(first, second), signs));
  }
  /** The upper, or lower, halves of two vectors. */
  static FERRY_INLINE Halves upper_halves(Words first, Words second) {
    return in_order(
        _mm256_packus_epi32(_mm256_srli_epi32(first, 16), _mm256_srli_epi32(second, 16)));
  }
  static FERRY_INLINE Halves lower_halves(Words first, Words second) {
    const __m256i lower = _mm256_set1_epi32(0xffff);
    return in_order(
        _mm256_packus_epi32(_mm256_and_si256(first, lower), _mm256_and_si256(second, lower)));
  }
  /** Two vectors of these halves. */
  static FERRY_INLINE void join(Halves upper, Halves lower, Words& first, Words& second) {
    const __m256i u = in_order(upper), l = in_order(lower);
    first = _mm256_unpacklo_epi16(l, u);
    second = _mm256_unpackhi_epi16(l, u);
  }
  /** Two vectors whose lower halves are zero. */
  static FERRY_INLINE void widen(Halves upper, Words& first, Words& second) {
    const __m256i u = in_order(upper);
    first = _mm256_unpacklo_epi16(_mm256_setzero_si256(), u);
    second = _mm256_unpackhi_epi16(_mm256_setzero_si256(), u);
  }
  /** Parts two vectors in their order into the even elements and the odd ones; and back. */
  static FERRY_INLINE void deinterleave(Value& first, Value& second) {
    const __m256 even = _mm256_shuffle_ps(first, second, _MM_SHUFFLE(2, 0, 2, 0));
    const __m256 odd = _mm256_shuffle_ps(first, second, _MM_SHUFFLE(3, 1, 3, 1));
    first = in_order(even), second = in_order(odd);
  }
  static FERRY_INLINE void interleave(Value& first, Value& second) {
    const __m256 even = in_order(first), odd = in_order(second);
    first = _mm256_unpacklo_ps(even, odd), second = _mm256_unpackhi_ps(even, odd);
  }

  static FERRY_INLINE Doubles low_doubles(Value x) {
    return _mm256_cvtps_pd(_mm256_castps256_ps128(x));
  }
  static FERRY_INLINE Doubles high_doubles(Value x) {
    return _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
  }

  /** Zero where keep[lane] is zero. */
  static FERRY_INLINE Value select(const uint8_t* keep, Value x) {
    const __m256i flags =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(keep)));
    const __m256i dropped = _mm256_cmpeq_epi32(flags, _mm256_setzero_si256());
    return _mm256_andnot_ps(_mm256_castsi256_ps(dropped), x);
  }

  static FERRY_INLINE Words iota() { return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7); }
  /** 32 x 32 -> 64 bits in each lane. */
  static FERRY_INLINE void multiply_wide(Words a, uint32_t factor, Words& high, Words& low) {
    const __m256i k = _mm256_set1_epi32(static_cast<int>(factor));
    const __m256i even = _mm256_mul_epu32(a, k);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), k);
    low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  }
  /** Byte w of each 32-bit lane: word[w] >= threshold. */
  static FERRY_INLINE void store_keep(uint8_t* keep, const Words* word, uint32_t threshold) {
    const __m256i limit = _mm256_set1_epi32(static_cast<int>(threshold));
    __m256i bytes = _mm256_setzero_si256();
    for (int w = 0; w < 4; ++w) {
      const __m256i kept = _mm256_cmpeq_epi32(_mm256_max_epu32(word[w], limit), word[w]);
      bytes = _mm256_or_si256(bytes, _mm256_and_si256(kept, _mm256_set1_epi32(1 << (8 * w))));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(keep), bytes);
  }

 private:
  /** Packing and unpacking work on each half of a vector: quarters 0, 2, 1, 3 are the order between
   * theirs and the elements', both ways. */
  static constexpr int kEvenFirst = 0xd8;
  static FERRY_INLINE __m256i in_order(__m256i packed) {
    return _mm256_permute4x64_epi64(packed, kEvenFirst);
  }
  static FERRY_INLINE __m256 in_order(__m256 packed) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(packed), kEvenFirst));
  }
  static FERRY_INLINE void store_packed(uint8_t* to, __m256i packed) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), in_order(packed));
  }
};

#else

/** The upper halves of two vectors, and their lower ones. */
alignas(64) constexpr uint16_t kUpperOrder[] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21,
                                                23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
                                                45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
alignas(64) constexpr uint16_t kLowerOrder[] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20,
                                                22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
                                                44, 46, 48, 50, 52, 54, 56, 58, 60, 62};

template <>
struct Lanes<xsimd::avx512bw> : LanesBase<xsimd::avx512bw> {
  using LanesBase::load;
  using LanesBase::store;

  static FERRY_INLINE Value fma(Value a, Value b, Value c) { return _mm512_fmadd_ps(a, b, c); }
  static FERRY_INLINE Doubles fma(Doubles a, Doubles b, Doubles c) {
    return _mm512_fmadd_pd(a, b, c);
  }
  static FERRY_INLINE bool any_nan(Value x) { return any_nan(x, x); }
  /** In either. */
  static FERRY_INLINE bool any_nan(Value x, Value y) {
    return _mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q) != 0;
  }
  /** 1 or -1; zeros and NaNs stay. */
  static FERRY_INLINE Value sign(Value x) {
    const __m512 minus = _mm512_set1_ps(-0.0f);
    const __m512 one = _mm512_or_ps(_mm512_and_ps(x, minus), _mm512_set1_ps(1.0f));
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NEQ_OQ), x, one);
  }
  static FERRY_INLINE Value canonical(Value x) {
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(kCanonicalNan)));
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x, nan);
  }

  static FERRY_INLINE Value load(const Half* from) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static FERRY_INLINE Value load(const Bfloat* from) {
    const __m512i bits =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
  }
  static FERRY_INLINE __m256i narrow(Value x, Half) {
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  }
  static FERRY_INLINE __m256i narrow(Value x, Bfloat) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i high = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(
        _mm512_mask_blend_epi32(is_nan, _mm512_srli_epi32(sum, 16), quiet));
  }
  template <class Narrow>
  static FERRY_INLINE void store(Narrow* to, Value x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), narrow(x, Narrow{}));
  }
  static FERRY_INLINE void stream(float* to, Value x) { _mm512_stream_ps(to, x); }
  template <class Narrow>
  static FERRY_INLINE void stream(Narrow* to, Value x) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), narrow(x, Narrow{}));
  }

  static FERRY_INLINE Words bits(Value x) { return _mm512_castps_si512(x); }
  static FERRY_INLINE Value from_bits(Words x) { return _mm512_castsi512_ps(x); }
  static FERRY_INLINE Halves max(Halves a, Halves b) { return _mm512_max_epu16(a, b); }
  static FERRY_INLINE Halves sub_floor(Halves a, Halves b) { return _mm512_subs_epu16(a, b); }
  static FERRY_INLINE Halves average(Halves a, Halves b) { return _mm512_avg_epu16(a, b); }
  /** y where x has any bit of the mask, else zero. */
  static FERRY_INLINE Halves where_any(Halves x, Halves mask, Halves y) {
    return _mm512_maskz_mov_epi16(_mm512_test_epi16_mask(x, mask), y);
  }
  static FERRY_INLINE uint32_t largest(Halves x) {
    const __m256i half =
        _mm256_max_epu16(_mm512_castsi512_si256(x), _mm512_extracti64x4_epi64(x, 1));
    return largest_of_8(
        _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
  }
  static FERRY_INLINE Halves load_halves(const uint16_t* from) { return _mm512_loadu_si512(from); }
  static FERRY_INLINE Halves load_halves(const uint8_t* from) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static FERRY_INLINE Halves load_signed_halves(const uint8_t* from) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  static FERRY_INLINE void store_halves(uint16_t* to, Halves x) { _mm512_storeu_si512(to, x); }
  static FERRY_INLINE void stream_halves(uint16_t* to, Halves x) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), x);
  }
  /** Words of two halves: the lower halves, or the upper ones, of x below those of y. One
   * instruction, where a shift and a blend would be two. */
  static FERRY_INLINE Words lower_pairs(Words x, Words y) {
    return _mm512_mask_shuffle_epi8(x, kUpperBytes, y, swapped_halves());
  }
  static FERRY_INLINE Words upper_pairs(Words x, Words y) {
    return _mm512_mask_shuffle_epi8(y, ~kUpperBytes, x, swapped_halves());
  }
  /** Two vectors as bytes, which hold them. */
  static FERRY_INLINE void store_bytes(uint8_t* to, Halves first, Halves second) {
    store_packed(to, _mm512_packus_epi16(first, second));
  }
  /** With the sign of `signs` as the first bit of each. */
  static FERRY_INLINE void store_signed_bytes(
      uint8_t* to, Halves first, Halves second, Halves first_signs, Halves second_signs) {
    const __m512i signs = _mm512_and_si512(_mm512_packs_epi16(first_signs, second_signs),
                                           _mm512_set1_epi8(static_cast<char>(0x80)));
    store_packed(to, _mm512_or_si512(_mm512_packus_epi16(first, second), signs));
  }
  /** The upper, or lower, halves of two vectors. */
  static FERRY_INLINE Halves upper_halves(Words first, Words second) {
    return _mm512_permutex2var_epi16(first, _mm512_load_si512(kUpperOrder), second);
  }
  static FERRY_INLINE Halves lower_halves(Words first, Words second) {
    return _mm512_permutex2var_epi16(first, _mm512_load_si512(kLowerOrder), second);
  }
  /** Two vectors of these halves. */
  static FERRY_INLINE void join(Halves upper, Halves lower, Words& first, Words& second) {
    const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i u = _mm512_permutexvar_epi64(order, upper);
    const __m512i l = _mm512_permutexvar_epi64(order, lower);
    first = _mm512_unpacklo_epi16(l, u);
    second = _mm512_unpackhi_epi16(l, u);
  }
  /** Two vectors whose lower halves are zero. */
  static FERRY_INLINE void widen(Halves upper, Words& first, Words& second) {
    // In the odd halves 0, 1, 2, ..., and 16, 17, ...
    const __m512i order = _mm512_slli_epi32(iota(), 16);
    first = _mm512_maskz_permutexvar_epi16(kOddHalves, order, upper);
    second = _mm512_maskz_permutexvar_epi16(
        kOddHalves, _mm512_add_epi32(order, _mm512_set1_epi32(16 << 16)), upper);
  }
  /** Parts two vectors in their order into the even elements and the odd ones; and back. */
  static FERRY_INLINE void deinterleave(Value& first, Value& second) {
    const __m512i even = _mm512_slli_epi32(iota(), 1);
    const __m512i odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
    const __m512 evens = _mm512_permutex2var_ps(first, even, second);
    second = _mm512_permutex2var_ps(first, odd, second);
    first = evens;
  }
  static FERRY_INLINE void interleave(Value& first, Value& second) {
    const __m512i lower = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i upper = _mm512_or_si512(lower, _mm512_set1_epi32(8));
    const __m512 start = _mm512_permutex2var_ps(first, lower, second);
    second = _mm512_permutex2var_ps(first, upper, second);
    first = start;
  }

  static FERRY_INLINE Doubles low_doubles(Value x) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(x));
  }
  static FERRY_INLINE Doubles high_doubles(Value x) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1));
  }

  /** Zero where keep[lane] is zero. */
  static FERRY_INLINE Value select(const uint8_t* keep, Value x) {
    const __m128i flags = _mm_loadu_si128(reinterpret_cast<const __m128i*>(keep));
    return _mm512_maskz_mov_ps(_mm_test_epi8_mask(flags, flags), x);
  }

  static FERRY_INLINE Words iota() {
    return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
  /** 32 x 32 -> 64 bits in each lane. */
  static FERRY_INLINE void multiply_wide(Words a, uint32_t factor, Words& high, Words& low) {
    const __m512i k = _mm512_set1_epi32(static_cast<int>(factor));
    const __m512i even = _mm512_mul_epu32(a, k);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), k);
    low = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    high = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  }
  /** Byte w of each 32-bit lane: word[w] >= threshold. */
  static FERRY_INLINE void store_keep(uint8_t* keep, const Words* word, uint32_t threshold) {
    const __m512i limit = _mm512_set1_epi32(static_cast<int>(threshold));
    __m512i bytes = _mm512_setzero_si512();
    for (int w = 0; w < 4; ++w) {
      const __mmask16 kept = _mm512_cmpge_epu32_mask(word[w], limit);
      bytes = _mm512_or_si512(bytes, _mm512_maskz_set1_epi32(kept, 1 << (8 * w)));
    }
    _mm512_storeu_si512(keep, bytes);
  }

 private:
  static constexpr __mmask32 kOddHalves = 0xaaaaaaaau;
  static constexpr __mmask64 kUpperBytes = 0xccccccccccccccccu;  // of each word
  /** The bytes of each word's halves the other way round. */
  static FERRY_INLINE __m512i swapped_halves() {
    return _mm512_set4_epi32(0x0d0c0f0e, 0x09080b0a, 0x05040706, 0x01000302);
  }
  /** Packing works on each quarter of a vector. */
  static FERRY_INLINE void store_packed(uint8_t* to, __m512i packed) {
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    _mm512_storeu_si512(to, _mm512_permutexvar_epi64(order, packed));
  }
};

#endif

}  // namespace ferry::simd
