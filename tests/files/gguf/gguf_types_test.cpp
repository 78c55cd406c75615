// Blocks of GGUF's types: hand-made ones become the values that their formulas say, and values come
// back from the types that Ferry writes within their rounding.

#include "src/files/gguf/gguf_types.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace ferry {
namespace {

std::vector<float> decoded(GgufType type, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / static_cast<size_t>(block_bytes(type)) *
                            static_cast<size_t>(block_elements(type)));
  decode_gguf(type, bytes, values);
  return values;
}

std::vector<float> round_trip(GgufType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(bytes_of(type, static_cast<int64_t>(values.size()))));
  encode_gguf(type, values, bytes);
  return decoded(type, bytes);
}

/** A block of bytes 0, with halves (fp16) at some places. */
class BlockOf {
 public:
  explicit BlockOf(GgufType type) : type_(type), bytes_(static_cast<size_t>(block_bytes(type))) {}
  BlockOf& half(size_t at, float value) {
    encode_gguf(GgufType::f16, std::span(&value, 1), std::span(bytes_).subspan(at, 2));
    return *this;
  }
  BlockOf& byte(size_t at, int value) {
    bytes_[at] = static_cast<std::byte>(value);
    return *this;
  }
  std::vector<float> values() const { return decoded(type_, bytes_); }

 private:
  GgufType type_;
  std::vector<std::byte> bytes_;
};

TEST(GgufTypes, BlocksOf32) {
  const auto q8 = BlockOf(GgufType::q8_0).half(0, 0.5).byte(2, 0x80).byte(33, 127).values();
  EXPECT_EQ(q8[0], -64);
  EXPECT_EQ(q8[1], 0);
  EXPECT_EQ(q8[31], 63.5);

  // The low half of a byte is an element of the first 16, the high half one of the last.
  const auto q4 = BlockOf(GgufType::q4_0).half(0, 2).byte(2, 0xF1).values();
  EXPECT_EQ(q4[0], -14);
  EXPECT_EQ(q4[16], 14);
  EXPECT_EQ(q4[1], -16);

  const auto q4_1 = BlockOf(GgufType::q4_1).half(0, 2).half(2, -3).byte(4, 0xF1).values();
  EXPECT_EQ(q4_1[0], -1);
  EXPECT_EQ(q4_1[16], 27);
  EXPECT_EQ(q4_1[1], -3);

  const auto q5 = BlockOf(GgufType::q5_0).half(0, 1).byte(2, 1).byte(4, 1).byte(6, 0x21).values();
  EXPECT_EQ(q5[0], 1);   // 16 + 1 - 16
  EXPECT_EQ(q5[16], 2);  // 16 + 2 - 16
  EXPECT_EQ(q5[1], -16);
  const auto q5_1 =
      BlockOf(GgufType::q5_1).half(0, 1).half(2, 0.5).byte(4, 1).byte(8, 0x21).values();
  EXPECT_EQ(q5_1[0], 17.5);
  EXPECT_EQ(q5_1[16], 2.5);
}

TEST(GgufTypes, BlocksOf256) {
  // Group 0 has scale 3 and least value 2, group 5 scale 0x1A and least value 0x25.
  const auto k_block = [](GgufType type) {
    BlockOf block(type);
    block.half(0, 0.5).half(2, 0.25).byte(4, 3).byte(8, 2);
    block.byte(4 + 1, 1 << 6).byte(4 + 5, 2 << 6).byte(4 + 9, 0x5A);
    return block;
  };
  BlockOf q4 = k_block(GgufType::q4_k);
  const auto values = q4.byte(16, 0x07).byte(16 + 64 + 3, 0x90).values();
  EXPECT_EQ(values[0], 0.5f * 3 * 7 - 0.25f * 2);
  EXPECT_EQ(values[1], -0.5);
  EXPECT_EQ(values[160 + 3], 0.5f * 26 * 9 - 0.25f * 37);
  EXPECT_EQ(values[160], -0.25f * 37);
  EXPECT_EQ(values[64], 0);

  BlockOf q5 = k_block(GgufType::q5_k);
  const auto fives = q5.byte(16 + 3, 1 << 5).byte(48, 0x07).byte(48 + 64 + 3, 0x90).values();
  EXPECT_EQ(fives[0], values[0]);
  EXPECT_EQ(fives[160 + 3], 0.5f * 26 * 25 - 0.25f * 37);

  BlockOf q6(GgufType::q6_k);
  // Element 128 + 2 * 32 + 5: the high half of byte 64 + 5, and bits 4 and 5 of byte 32 + 5.
  q6.half(208, 0.5).byte(192 + 12, -3).byte(64 + 5, 0xB0).byte(128 + 32 + 5, 0x20);
  const auto sixes = q6.values();
  EXPECT_EQ(sixes[197], 0.5f * -3 * ((2 << 4 | 11) - 32));
  EXPECT_EQ(sixes[192], 0.5f * -3 * -32);
  EXPECT_EQ(sixes[0], 0);
}

TEST(GgufTypes, RoundsToTheNearest) {
  const std::vector<float> values = {1.0f, -0.1f, 65504, 3e-6f, 0};
  EXPECT_EQ(round_trip(GgufType::f32, values), values);
  for (const auto& [type, digits] : {std::pair{GgufType::f16, 11}, {GgufType::bf16, 8}}) {
    const auto back = round_trip(type, values);
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_LE(std::abs(back[i] - values[i]),
                std::max(std::ldexp(std::abs(values[i]), -digits), std::ldexp(1.0f, -25)))
          << name_of(type);
  }
  EXPECT_EQ(round_trip(GgufType::f16, {65504, 65520})[1], std::numeric_limits<float>::infinity());
}

TEST(GgufTypes, EightBitsHoldTheGreatestOfABlock) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i)
    values.push_back(std::sin(static_cast<float>(i) * 7) * (i < 32 ? 3.0f : 0.05f));
  const auto back = round_trip(GgufType::q8_0, values);
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(back[i], values[i], i < 32 ? 3.0 / 250 : 0.05 / 250) << i;
  EXPECT_EQ(round_trip(GgufType::q8_0, std::vector<float>(32)), std::vector<float>(32));
}

TEST(GgufTypes, KnowsTheNumbersOfTheFormat) {
  EXPECT_EQ(gguf_type_of(30), GgufType::bf16);
  EXPECT_EQ(gguf_type_of(14), GgufType::q6_k);
  EXPECT_FALSE(gguf_type_of(9));
  EXPECT_FALSE(gguf_type_of(UINT32_MAX));
  EXPECT_EQ(name_of(GgufType::q8_0), "Q8_0");
  EXPECT_EQ(bytes_of(GgufType::q4_k, 512), 288);
}

}  // namespace
}  // namespace ferry
