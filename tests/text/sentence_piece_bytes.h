#pragma once
// The fields of SentencePiece's .model files, for tests that write such files.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace ferry::test {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

inline std::string number(uint64_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}

inline std::string bytes(uint64_t field, std::string_view content) {
  return varint(field << 3 | 2) + varint(content.size()) + std::string(content);
}

inline std::string real(uint64_t field, float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  std::string result = varint(field << 3 | 5);
  for (int i = 0; i < 4; ++i)
    result.push_back(static_cast<char>(bits >> 8 * i));
  return result;
}

enum Algorithm { unigram = 1, bpe = 2 };
enum Kind { normal = 1, unknown, control, user_defined, unused, byte };

inline std::string piece(std::string_view text, float score, Kind kind = normal) {
  return bytes(1, bytes(1, text) + real(2, score) + number(3, kind));
}

}  // namespace ferry::test
