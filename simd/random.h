#pragma once
// Keys for everything random: one 64-bit key per (seed, step, micro-batch, block,
// operation), the same wherever and however often the operation runs. Host only; the key then goes
// to dropout_mask, to CUDA kernels, or seeds LibTorch's generator around fused attention.

#include <cstdint>
#include <initializer_list>

namespace ferry::simd {

/** The finaliser of splitmix64 (Steele, Lea, Flood 2014) on x plus its increment; a bijection. */
constexpr uint64_t splitmix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/** The chain key = splitmix64(key ^ field) over step, micro_batch, block, operation, starting from
 *  splitmix64(seed). Being a bijection in each field, keys that differ in one field only never
 * collide. micro_batch: its place in the step; operation: index of the drawing operation inside its
 * block. */
constexpr uint64_t mix_key(
    uint64_t seed, uint64_t step, uint64_t micro_batch, uint64_t block, uint64_t operation) {
  uint64_t key = splitmix64(seed);
  for (const uint64_t field : {step, micro_batch, block, operation})
    key = splitmix64(key ^ field);
  return key;
}

}  // namespace ferry::simd
