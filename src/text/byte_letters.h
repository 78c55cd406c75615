#pragma once
// GPT-2 writes its vocabulary in letters that stand for bytes, so that it is text: printable
// Latin-1 characters stand for themselves, the other bytes for U+0100 and what follows. Called by
// what is byte-level: model, decoder.

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "src/text/unicode/unicode.h"

namespace ferry::text {

constexpr bool is_own_letter(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xFF && byte != 0xAD);
}

/** The letter of each byte. */
constexpr std::array<char32_t, 256> kByteLetters = [] {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte)
    letters[byte] = is_own_letter(byte) ? byte : next++;
  return letters;
}();

/** The byte of each letter, -1 for what is none. */
constexpr std::array<int16_t, 0x144> kLetterBytes = [] {
  std::array<int16_t, 0x144> bytes{};
  bytes.fill(-1);
  for (unsigned byte = 0; byte < 256; ++byte)
    bytes[kByteLetters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}();

/** The bytes that letters stand for; nothing if one of them is no such letter. */
inline std::optional<std::string> bytes_of_letters(std::string_view letters) {
  std::string bytes;
  bytes.reserve(letters.size());
  for (size_t i = 0; i < letters.size();) {
    const char32_t c = next_code_point(letters, i);
    if (c >= kLetterBytes.size() || kLetterBytes[c] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kLetterBytes[c]));
  }
  return bytes;
}

}  // namespace ferry::text
