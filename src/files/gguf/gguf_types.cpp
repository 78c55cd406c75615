#include "src/files/gguf/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "simd/block_formats.h"
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
    TypeRow{GgufType::q6_k, "Q6_K", 256, 210}, TypeRow{GgufType::mxfp4, "MXFP4", 32, 17},
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

/** Blocks of 32: a scale, perhaps a least value, the fifth bits, 16 bytes of two numbers. */
void decode_q5(GgufType type, Block block, float* out) {
  const bool has_minimum = type == GgufType::q5_1;
  const float d = block.half(0), m = has_minimum ? block.half(2) : 0;
  const int64_t fifths = has_minimum ? 4 : 2, at = fifths + 4;
  uint32_t fifth = 0;
  std::memcpy(&fifth, block.bytes + fifths, sizeof fifth);
  for (int i = 0; i < 32; ++i) {
    const int q = (i < 16 ? block.low(at + i) : block.high(at + i - 16)) |
                  static_cast<int>(fifth >> i & 1) << 4;
    const float scaled = d * real(has_minimum ? q : q - 16);
    out[i] = has_minimum ? scaled + m : scaled;
  }
}

/** Q4_K with the fifth bits of each code beside. */
void decode_q5_k(Block block, float* out) {
  const int64_t fifths = 16, at = 48;
  const auto* as_q4_k = reinterpret_cast<const uint8_t*>(block.bytes);
  for (int j = 0; j < 8; ++j) {
    const simd::BlockScale scale = simd::BlockQ4_K::scale(as_q4_k, 32 * j);
    for (int i = 0; i < 32; ++i) {
      const int64_t byte = at + 32 * (j / 2) + i;
      const int q = (j % 2 == 0 ? block.low(byte) : block.high(byte)) | (block[fifths + i] >> j & 1)
                                                                            << 4;
      const float scaled = scale.factor * real(q);
      out[32 * j + i] = scaled + scale.shift;
    }
  }
}

/** MXFP4, of which no code is -0 here. */
void decode_mxfp4(const uint8_t* row, int64_t first_column, std::span<float> out) {
  simd::row_values<simd::BlockMxfp4>(row, first_column, std::ssize(out), out.data());
  for (float& value : out)
    value += 0.0f;
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
  decode_gguf(type, bytes, 0, out);
}

void decode_gguf(GgufType type,
                 std::span<const std::byte> bytes,
                 int64_t first,
                 std::span<float> out) {
  const auto* row = reinterpret_cast<const uint8_t*>(bytes.data());
  const auto read = [&]<class Format>(Format) {
    simd::row_values<Format>(row, first, std::ssize(out), out.data());
  };
  switch (type) {
    case GgufType::q8_0:
      return read(simd::BlockQ8_0());
    case GgufType::q4_0:
      return read(simd::BlockQ4_0());
    case GgufType::q4_1:
      return read(simd::BlockQ4_1());
    case GgufType::q4_k:
      return read(simd::BlockQ4_K());
    case GgufType::q6_k:
      return read(simd::BlockQ6_K());
    case GgufType::mxfp4:
      return decode_mxfp4(row, first, out);
    default:
      break;
  }
  const auto n_bytes = static_cast<size_t>(block_bytes(type));
  const int64_t n = block_elements(type);
  if (n == 1)
    return convert_to_f32(stored_type(type),
                          bytes.subspan(static_cast<size_t>(first) * n_bytes, out.size() * n_bytes),
                          out);
  std::array<float, 256> values{};
  const int64_t end = first + std::ssize(out);
  for (int64_t at = first; at < end;) {
    const Block block{bytes.data() + static_cast<size_t>(at / n) * n_bytes};
    if (type == GgufType::q5_k)
      decode_q5_k(block, values.data());
    else
      decode_q5(type, block, values.data());
    const int64_t n_here = std::min(n - at % n, end - at);
    std::copy_n(values.begin() + at % n, n_here, out.begin() + (at - first));
    at += n_here;
  }
}

}  // namespace ferry
