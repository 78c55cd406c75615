#pragma once
// Blocks of quantised values as GGUF files have them, and MXFP4's: where the scale of 16 values and
// the code of each value lie. A value is factor * code, or factor * code + shift, each operation
// rounded to fp32, as gguf's Python and transformers have it. The reader of GGUF files, linear maps
// on the CPU and CUDA kernels share this page. A row is whole blocks.

#include <cstdint>
#include <cstring>

#include "simd/host_device.h"

namespace ferry::simd {

/** 16 values of a block, the first at a multiple of 16, share these. */
struct BlockScale {
  float factor = 0, shift = 0;
};
inline constexpr int kBlockGroup = 16;

FERRY_INLINE float float_of_bits(uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/** The fp16 at two bytes, little-endian. */
FERRY_INLINE float f16_at(const uint8_t* at) {
  const uint32_t word = at[0] | static_cast<uint32_t>(at[1]) << 8;
  const uint32_t sign = (word & 0x8000u) << 16, exponent = word >> 10 & 31, part = word & 1023;
  if (exponent == 31) return float_of_bits(sign | 0x7F800000u | part << 13);
  if (exponent > 0) return float_of_bits(sign | (exponent + 112) << 23 | part << 13);
  const float value = static_cast<float>(part) * 0x1p-24f;
  return sign ? -value : value;
}

/** 16 bytes have two codes each: the low halves are the first 16 codes, the high ones the last. */
FERRY_INLINE int nibble(const uint8_t* codes, int i) {
  return i < 16 ? codes[i] & 15 : codes[i - 16] >> 4;
}

struct BlockQ8_0 {
  static constexpr int kValues = 32, kBytes = 34;
  static constexpr bool kShifts = false;
  static FERRY_INLINE BlockScale scale(const uint8_t* block, int /*first*/) {
    return {f16_at(block), 0};
  }
  static FERRY_INLINE int code(const uint8_t* block, int i) {
    return static_cast<int8_t>(block[2 + i]);
  }
};

struct BlockQ4_0 {
  static constexpr int kValues = 32, kBytes = 18;
  static constexpr bool kShifts = false;
  static FERRY_INLINE BlockScale scale(const uint8_t* block, int /*first*/) {
    return {f16_at(block), 0};
  }
  static FERRY_INLINE int code(const uint8_t* block, int i) { return nibble(block + 2, i) - 8; }
};

struct BlockQ4_1 {
  static constexpr int kValues = 32, kBytes = 20;
  static constexpr bool kShifts = true;
  static FERRY_INLINE BlockScale scale(const uint8_t* block, int /*first*/) {
    return {f16_at(block), f16_at(block + 2)};
  }
  static FERRY_INLINE int code(const uint8_t* block, int i) { return nibble(block + 4, i); }
};

/** Eight groups of 32, whose scales and least values have six bits each. */
struct BlockQ4_K {
  static constexpr int kValues = 256, kBytes = 144;
  static constexpr bool kShifts = true;
  static FERRY_INLINE BlockScale scale(const uint8_t* block, int first) {
    const int group = first / 32;
    const uint8_t* six = block + 4;  // 12 bytes
    const int scale =
        group < 4 ? six[group] & 63 : (six[group + 4] & 15) | (six[group - 4] >> 6) << 4;
    const int least =
        group < 4 ? six[group + 4] & 63 : (six[group + 4] >> 4) | (six[group] >> 6) << 4;
    return {f16_at(block) * static_cast<float>(scale),
            -(f16_at(block + 2) * static_cast<float>(least))};
  }
  static FERRY_INLINE int code(const uint8_t* block, int i) {
    const int byte = block[16 + i / 64 * 32 + i % 32];
    return i / 32 % 2 == 0 ? byte & 15 : byte >> 4;
  }
};

/** Four bits of a code here, two there; each 16 have a scale of eight bits. */
struct BlockQ6_K {
  static constexpr int kValues = 256, kBytes = 210;
  static constexpr bool kShifts = false;
  static FERRY_INLINE BlockScale scale(const uint8_t* block, int first) {
    return {f16_at(block + 208) * static_cast<float>(static_cast<int8_t>(block[192 + first / 16])),
            0};
  }
  static FERRY_INLINE int code(const uint8_t* block, int i) {
    const int half = i / 128, part = i / 32 % 4, at = i % 32;
    const int byte = block[64 * half + 32 * (part & 1) + at];
    const int low = part < 2 ? byte & 15 : byte >> 4;
    const int high = block[128 + 32 * half + at] >> 2 * part & 3;
    return (low | high << 4) - 32;
  }
};

/** A power of two and 32 values of FP4 (E2M1), doubled here to be whole numbers. Code 8 is -0. */
struct BlockMxfp4 {
  static constexpr int kValues = 32, kBytes = 17;
  static constexpr bool kShifts = false;
  static FERRY_INLINE BlockScale scale(const uint8_t* block, int /*first*/) {
    const uint32_t e = block[0];  // the factor is 2 ^ (e - 128)
    return {float_of_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23), 0};
  }
  static FERRY_INLINE float code(const uint8_t* block, int i) {
    const int code = nibble(block + 1, i), low = code & 7;
    const int doubled = low < 5 ? low : low == 5 ? 6 : low == 6 ? 8 : 12;
    const auto value = static_cast<float>(doubled);
    return code < 8 ? value : -value;
  }
};

/** Value i of a block; `scale` is the one of its 16 values. */
template <class Format>
FERRY_INLINE float block_value(const BlockScale& scale, const uint8_t* block, int i) {
  const float scaled = scale.factor * static_cast<float>(Format::code(block, i));
  // The sum with a zero would change the sign of -0.
  return Format::kShifts ? scaled + scale.shift : scaled;
}

/** n values of a row of blocks from a column on. */
template <class Format>
inline void row_values(const uint8_t* row, int64_t first_column, int64_t n, float* values) {
  const int64_t end = first_column + n;
  for (int64_t column = first_column; column < end;) {
    const uint8_t* block = row + column / Format::kValues * Format::kBytes;
    const int first = static_cast<int>(column % Format::kValues), in_group = first % kBlockGroup;
    const BlockScale scale = Format::scale(block, first - in_group);
    const int64_t left = end - column, in_rest = kBlockGroup - in_group;
    const int n_here = static_cast<int>(left < in_rest ? left : in_rest);
    for (int i = first; i < first + n_here; ++i)
      *values++ = block_value<Format>(scale, block, i);
    column += n_here;
  }
}

}  // namespace ferry::simd
