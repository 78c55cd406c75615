#pragma once
// Private to simd/: the vector kernels, templates over the ISA. kernels_avx2.cpp and
// kernels_avx512.cpp, compiled with their ISA's flags, include it and instantiate
// KernelsFor<Arch>::table(); only raw pointers and xsimd here, so no function of those files can
// replace one of the portable program's.

#include "simd/kernel_table.h"
#include "simd/lanes.h"
#include "simd/scalar_loops.h"
#include "simd/update/update_impl.h"

namespace ferry::simd {

template <class Arch>
struct KernelsFor {
  using L = Lanes<Arch>;
  using Value = typename L::Value;
  using Doubles = typename L::Doubles;
  using Words = typename L::Words;
  static constexpr int64_t kWidth = L::kWidth;

  // ---- conversions and sums ----

  template <class To, class From>
  static FERRY_INLINE void convert(To* to, const From* from, int64_t n) {
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth)
      L::store(to + i, L::load(from + i));
    convert_loop(to, from, i, n);
  }
  static void f32_to_f16(uint16_t* to, const float* from, int64_t n) {
    convert(reinterpret_cast<Half*>(to), from, n);
  }
  static void f32_to_bf16(uint16_t* to, const float* from, int64_t n) {
    convert(reinterpret_cast<Bfloat*>(to), from, n);
  }
  static void f16_to_f32(float* to, const uint16_t* from, int64_t n) {
    convert(to, reinterpret_cast<const Half*>(from), n);
  }
  static void bf16_to_f32(float* to, const uint16_t* from, int64_t n) {
    convert(to, reinterpret_cast<const Bfloat*>(from), n);
  }

  static void accumulate(float* sum, const void* grad, DType grad_type, int64_t n) {
    with_element_type(grad_type, [&]<class Grad>(Grad*) {
      const auto* g = static_cast<const Grad*>(grad);
      int64_t i = 0;
      for (; i + kWidth <= n; i += kWidth)
        L::store(sum + i, add_element<L>(L::load(sum + i), L::load(g + i)));
      accumulate_loop(sum, g, i, n);
    });
  }

  // ---- norm tree ----

  /** Lanes that one pass over a chunk keeps in eight registers: 32 with AVX2, 64 with AVX-512. */
  static constexpr int64_t kPassLanes = 8 * static_cast<int64_t>(Doubles::size);

  template <class Grad>
  static FERRY_INLINE double square_sum_chunk(const Grad* grad, int64_t n) {
    alignas(64) double lanes[kNormLanes];
    const int64_t whole = n / kNormLanes * kNormLanes;
    for (int64_t first = 0; first < kNormLanes; first += kPassLanes) {
      Doubles sum[8];
      for (Doubles& lane : sum)
        lane = Doubles(0.0);
      for (int64_t row = first; row < whole; row += kNormLanes) {
        for (int64_t k = 0; k < 4; ++k) {
          const Value g = L::load(grad + row + k * kWidth);
          const Doubles low = L::low_doubles(g), high = L::high_doubles(g);
          sum[2 * k] = L::fma(low, low, sum[2 * k]);
          sum[2 * k + 1] = L::fma(high, high, sum[2 * k + 1]);
        }
      }
      for (int64_t k = 0; k < 8; ++k)
        sum[k].store_unaligned(lanes + first + k * static_cast<int64_t>(Doubles::size));
    }
    square_loop(lanes, grad, whole, n);
    return fold_lanes(lanes);
  }

  static void square_sum_chunks(const void* grad, DType grad_type, int64_t n, double* chunk_sums) {
    with_element_type(grad_type, [&]<class Grad>(Grad*) {
      const auto* g = static_cast<const Grad*>(grad);
      for (int64_t begin = 0; begin < n; begin += kNormChunk)
        *chunk_sums++ =
            square_sum_chunk(g + begin, n - begin < kNormChunk ? n - begin : kNormChunk);
    });
  }

  // ---- dropout ----

  /** The masks of kWidth counters from `counter` on; their low words do not wrap. */
  static FERRY_INLINE void store_masks(uint8_t* keep,
                                       uint64_t counter,
                                       uint64_t key,
                                       uint32_t threshold) {
    Words c[4] = {Words(static_cast<uint32_t>(counter)) + L::iota(),
                  Words(static_cast<uint32_t>(counter >> 32)), Words(0u), Words(0u)};
    uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    for (int round = 0; round < kPhiloxRounds; ++round) {
      Words high0, low0, high1, low1;
      L::multiply_wide(c[0], kPhiloxMul0, high0, low0);
      L::multiply_wide(c[2], kPhiloxMul1, high1, low1);
      c[0] = high1 ^ c[1] ^ Words(k0);
      c[1] = low1;
      c[2] = high0 ^ c[3] ^ Words(k1);
      c[3] = low0;
      k0 += kPhiloxKey0;
      k1 += kPhiloxKey1;
    }
    L::store_keep(keep, c, threshold);
  }

  static void dropout_mask(
      uint8_t* keep, int64_t n, uint64_t first_element, uint64_t key, uint32_t threshold) {
    int64_t i = static_cast<int64_t>((4 - first_element % 4) % 4);
    i = i < n ? i : n;
    dropout_mask_loop(keep, 0, i, first_element, key, threshold);
    for (; i + 4 * kWidth <= n; i += 4 * kWidth) {
      const uint64_t counter = (first_element + static_cast<uint64_t>(i)) / 4;
      if (static_cast<uint32_t>(counter) <= UINT32_MAX - static_cast<uint32_t>(kWidth)) {
        store_masks(keep + i, counter, key, threshold);
      } else {
        dropout_mask_loop(keep, i, i + 4 * kWidth, first_element, key, threshold);
      }
    }
    dropout_mask_loop(keep, i, n, first_element, key, threshold);
  }

  static void dropout_apply(
      void* out, const void* in, DType type, const uint8_t* keep, int64_t n, float scale) {
    with_element_type(type, [&]<class T>(T*) {
      auto* to = static_cast<T*>(out);
      const auto* from = static_cast<const T*>(in);
      const Value factor = L::set(scale);
      int64_t i = 0;
      for (; i + kWidth <= n; i += kWidth)
        L::store(to + i, L::select(keep + i, scale_element<L>(L::load(from + i), factor)));
      dropout_apply_loop(to, from, keep, i, n, scale);
    });
  }

  static constexpr KernelTable table() {
    return {
        UpdateFor<Arch>::update, f32_to_f16,   f32_to_bf16,  f16_to_f32, bf16_to_f32, accumulate,
        square_sum_chunks,       dropout_mask, dropout_apply};
  }
};

}  // namespace ferry::simd
