#include "src/files/gguf/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "simd/kernels.h"
#include "src/base/error.h"
#include "src/files/hf/checkpoint_reader.h"

namespace ferry {
namespace {

struct TypeRow {
  GgufType type;
  std::string_view name;
  int64_t elements, bytes;
};

constexpr std::array kTypes = {
    TypeRow{GgufType::f32, "F32", 1, 4},       TypeRow{GgufType::f16, "F16", 1, 2},
    TypeRow{GgufType::bf16, "BF16", 1, 2},     TypeRow{GgufType::q4_0, "Q4_0", 32, 18},
    TypeRow{GgufType::q4_1, "Q4_1", 32, 20},   TypeRow{GgufType::q5_0, "Q5_0", 32, 22},
    TypeRow{GgufType::q5_1, "Q5_1", 32, 24},   TypeRow{GgufType::q8_0, "Q8_0", 32, 34},
    TypeRow{GgufType::q4_k, "Q4_K", 256, 144}, TypeRow{GgufType::q5_k, "Q5_K", 256, 176},
    TypeRow{GgufType::q6_k, "Q6_K", 256, 210},
};

const TypeRow& row_of(GgufType type) {
  const auto* row = std::ranges::find(kTypes, type, &TypeRow::type);
  FERRY_CHECK(row != kTypes.end(), "GGUF type {}", static_cast<uint32_t>(type));
  return *row;
}

/** The bytes of one block. */
struct Block {
  const std::byte* bytes;

  int operator[](int64_t i) const { return std::to_integer<int>(bytes[i]); }
  float half(int64_t at) const {
    float value = 0;
    convert_to_f32(StoredType::f16, {bytes + at, 2}, {&value, 1});
    return value;
  }
  int low(int64_t i) const { return (*this)[i] & 15; }
  int high(int64_t i) const { return (*this)[i] >> 4; }
};

float real(int value) {
  return static_cast<float>(value);
}

/** Blocks of 32: a scale, perhaps a least value, perhaps the fifth bits, 16 bytes of two numbers.
 */
void decode_q4_q5(GgufType type, Block block, float* out) {
  const bool has_minimum = type == GgufType::q4_1 || type == GgufType::q5_1,
             has_fifth = type == GgufType::q5_0 || type == GgufType::q5_1;
  const float d = block.half(0), m = has_minimum ? block.half(2) : 0;
  int64_t at = has_minimum ? 4 : 2;
  uint32_t fifth = 0;
  if (has_fifth) {
    std::memcpy(&fifth, block.bytes + at, sizeof fifth);
    at += 4;
  }
  for (int i = 0; i < 32; ++i) {
    int q = i < 16 ? block.low(at + i) : block.high(at + i - 16);
    if (has_fifth) q |= static_cast<int>(fifth >> i & 1) << 4;
    if (has_minimum) {
      const float scaled = d * real(q);
      out[i] = scaled + m;
    } else {
      out[i] = d * real(q - (has_fifth ? 16 : 8));
    }
  }
}

/** Blocks of 256 in eight groups of 32, whose scales and least values have six bits each. */
void decode_q4_k_q5_k(GgufType type, Block block, float* out) {
  const bool has_fifth = type == GgufType::q5_k;
  const float d = block.half(0), d_min = block.half(2);
  const int64_t scales = 4, fifth = 16, low = has_fifth ? 48 : 16;
  for (int j = 0; j < 8; ++j) {
    const int a = block[scales + j], b = block[scales + (j + 4) % 12];
    const int scale =
        j < 4 ? a & 63 : (block[scales + j + 4] & 15) | ((block[scales + j - 4] >> 6) << 4);
    const int minimum = j < 4 ? b & 63 : (block[scales + j + 4] >> 4) | ((a >> 6) << 4);
    const float factor = d * real(scale), least = d_min * real(minimum);
    for (int i = 0; i < 32; ++i) {
      const int64_t at = low + 32 * (j / 2) + i;
      int q = j % 2 == 0 ? block.low(at) : block.high(at);
      if (has_fifth) q |= (block[fifth + i] >> j & 1) << 4;
      const float scaled = factor * real(q);
      out[32 * j + i] = scaled - least;
    }
  }
}

void decode_q6_k(Block block, float* out) {
  const int64_t high = 128, scales = 192;
  const float d = block.half(208);
  for (int e = 0; e < 256; ++e) {
    const int h = e / 128, k = e / 32 % 4, i = e % 32;
    const int64_t at = 64 * h + 32 * (k & 1) + i;
    const int q =
        (k < 2 ? block.low(at) : block.high(at)) | ((block[high + 32 * h + i] >> (2 * k) & 3) << 4);
    const float factor = d * real(static_cast<int8_t>(block[scales + e / 16]));
    out[e] = factor * real(q - 32);
  }
}

void decode_q8_0(Block block, float* out) {
  const float d = block.half(0);
  for (int i = 0; i < 32; ++i)
    out[i] = real(static_cast<int8_t>(block[2 + i])) * d;
}

void encode_q8_0(const float* values, std::byte* out) {
  float most = 0;
  for (int i = 0; i < 32; ++i)
    most = std::max(most, std::fabs(values[i]));
  const float d = most / 127, inverse = d > 0 ? 1 / d : 0;
  simd::convert(out, DType::f16, &d, DType::f32, 1);
  for (int i = 0; i < 32; ++i)
    out[2 + i] = static_cast<std::byte>(static_cast<int>(std::round(values[i] * inverse)));
}

StoredType stored_type(GgufType type) {
  return type == GgufType::f32   ? StoredType::f32
         : type == GgufType::f16 ? StoredType::f16
                                 : StoredType::bf16;
}

}  // namespace

std::string_view name_of(GgufType type) {
  return row_of(type).name;
}

std::optional<GgufType> gguf_type_of(uint32_t number) {
  for (const TypeRow& row : kTypes)
    if (static_cast<uint32_t>(row.type) == number) return row.type;
  return std::nullopt;
}

int64_t block_elements(GgufType type) {
  return row_of(type).elements;
}
int64_t block_bytes(GgufType type) {
  return row_of(type).bytes;
}

int64_t bytes_of(GgufType type, int64_t n_elements) {
  FERRY_CHECK(n_elements % block_elements(type) == 0, "{} elements of {}", n_elements,
              name_of(type));
  return n_elements / block_elements(type) * block_bytes(type);
}

void decode_gguf(GgufType type, std::span<const std::byte> bytes, std::span<float> out) {
  FERRY_CHECK(std::ssize(bytes) == bytes_of(type, std::ssize(out)), "{} bytes for {} of {}",
              bytes.size(), out.size(), name_of(type));
  if (block_elements(type) == 1) return convert_to_f32(stored_type(type), bytes, out);
  const auto n_bytes = static_cast<size_t>(block_bytes(type)),
             n = static_cast<size_t>(block_elements(type));
  for (size_t i = 0; i < out.size() / n; ++i) {
    const Block block{bytes.data() + i * n_bytes};
    float* to = out.data() + i * n;
    switch (type) {
      case GgufType::q8_0:
        decode_q8_0(block, to);
        break;
      case GgufType::q4_k:
      case GgufType::q5_k:
        decode_q4_k_q5_k(type, block, to);
        break;
      case GgufType::q6_k:
        decode_q6_k(block, to);
        break;
      default:
        decode_q4_q5(type, block, to);
    }
  }
}

void encode_gguf(GgufType type, std::span<const float> values, std::span<std::byte> out) {
  FERRY_CHECK(std::ssize(out) == bytes_of(type, std::ssize(values)), "{} bytes for {} of {}",
              out.size(), values.size(), name_of(type));
  const auto n = std::ssize(values);
  switch (type) {
    case GgufType::f32:
      if (n > 0) std::memcpy(out.data(), values.data(), out.size());
      return;
    case GgufType::f16:
      return simd::convert(out.data(), DType::f16, values.data(), DType::f32, n);
    case GgufType::bf16:
      return simd::convert(out.data(), DType::bf16, values.data(), DType::f32, n);
    case GgufType::q8_0:
      for (int64_t i = 0; i < n / 32; ++i)
        encode_q8_0(values.data() + 32 * i, out.data() + 34 * i);
      return;
    default:
      FERRY_CHECK(false, "no writer of {}", name_of(type));
  }
}

}  // namespace ferry
