#pragma once
// Random numbers as a pure function of (key, index): nothing to advance, store or replay. Private
// to src/data; the order of samples, splits and token masks are drawn from here, so a change of
// these lines changes every run's bits.

#include <cstdint>

namespace ferry {

/** The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits whose output
 * passes as random. */
constexpr uint64_t mix64(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/** One key of several parts; the order of the parts matters. */
template <typename... Parts>
constexpr uint64_t hash_key(uint64_t first, Parts... parts) {
  uint64_t key = mix64(first + 0x9e3779b97f4a7c15);
  ((key = mix64(key ^ mix64(static_cast<uint64_t>(parts) + 0x9e3779b97f4a7c15))), ...);
  return key;
}

/** 64 random bits at a place of the key's stream. */
constexpr uint64_t random_bits(uint64_t key, uint64_t index) {
  return mix64(key ^ mix64((index + 1) * 0x9e3779b97f4a7c15));
}

__extension__ using uint128 = unsigned __int128;

/** Random bits scaled to [0, n); the bias is below n / 2^64. */
constexpr uint64_t scale_below(uint64_t bits, uint64_t n) {
  return static_cast<uint64_t>((static_cast<uint128>(bits) * n) >> 64);
}

}  // namespace ferry
