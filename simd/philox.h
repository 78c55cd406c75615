#pragma once
// Philox4x32-10 (Salmon et al., SC 2011): four 32-bit random words from a 128-bit counter and a
// 64-bit key. Used by the CPU kernels (scalar form here, vector form in kernels_impl.h), by CUDA
// kernels, and by any fused kernel that draws its dropout mask on the fly: element e takes word e %
// 4 of counter e / 4.

#include <cstdint>

#include "simd/host_device.h"

namespace ferry::simd {

struct PhiloxWords {
  uint32_t word[4];
};

inline constexpr uint32_t kPhiloxMul0 = 0xD2511F53u, kPhiloxMul1 = 0xCD9E8D57u;
inline constexpr uint32_t kPhiloxKey0 = 0x9E3779B9u, kPhiloxKey1 = 0xBB67AE85u;
inline constexpr int kPhiloxRounds = 10;

/** The four words of `counter` (its low and high half first, then two zero words) under `key`. */
FERRY_INLINE PhiloxWords philox(uint64_t counter, uint64_t key) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32), c2 = 0,
           c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const uint64_t product0 = static_cast<uint64_t>(kPhiloxMul0) * c0;
    const uint64_t product1 = static_cast<uint64_t>(kPhiloxMul1) * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<uint32_t>(product0);
    k0 += kPhiloxKey0;
    k1 += kPhiloxKey1;
  }
  return {{c0, c1, c2, c3}};
}

/** The random word of element `element`. */
FERRY_INLINE uint32_t philox_element(uint64_t element, uint64_t key) {
  return philox(element / 4, key).word[element % 4];
}

/** An element is kept when its word is >= this: round(p * 2^32). Requires 0 <= p < 1. */
FERRY_INLINE uint32_t dropout_threshold(float p) {
  return static_cast<uint32_t>(static_cast<double>(p) * 4294967296.0 + 0.5);
}

/** The factor of kept elements: 1 / (1 - p) in double, rounded once. Requires 0 <= p < 1. */
FERRY_INLINE float dropout_scale(float p) {
  return static_cast<float>(1.0 / (1.0 - static_cast<double>(p)));
}

}  // namespace ferry::simd
