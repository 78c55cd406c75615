#include "src/base/utf8.h"

#include <algorithm>

#include <cstdint>
#include <cstring>

namespace ferry {
namespace {

/** Bytes of the valid sequence that begins at `i`, 0 if none does. */
size_t sequence_length(std::string_view text, size_t i) {
  const auto at = [&](size_t k) {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0u;
  };
  const unsigned lead = at(i);
  if (lead < 0x80) return 1;
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  unsigned low = 0x80, high = 0xbf;
  size_t n_bytes = 0;
  if (lead >= 0xc2 && lead <= 0xdf)
    n_bytes = 2;
  else if (lead >= 0xe0 && lead <= 0xef)
    n_bytes = 3, low = lead == 0xe0 ? 0xa0 : 0x80, high = lead == 0xed ? 0x9f : 0xbf;
  else if (lead >= 0xf0 && lead <= 0xf4)
    n_bytes = 4, low = lead == 0xf0 ? 0x90 : 0x80, high = lead == 0xf4 ? 0x8f : 0xbf;
  else
    return 0;
  if (at(i + 1) < low || at(i + 1) > high) return 0;
  for (size_t k = 2; k < n_bytes; ++k)
    if (at(i + k) < 0x80 || at(i + k) > 0xbf) return 0;
  return n_bytes;
}

/** The control character that begins at `i` of the text, or -1. */
int control_at(std::string_view text, size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  if (byte < 0x20 || byte == 0x7f) return byte;
  if (byte != 0xc2 || i + 1 == text.size()) return -1;
  const auto second = static_cast<unsigned char>(text[i + 1]);
  return second >= 0x80 && second <= 0x9f ? second : -1;
}

/** The last byte of U+202A to U+202E or U+2066 to U+2069, which begin or end a direction of text
 * and so show it otherwise than it is; -1 for others. */
int turn_at(std::string_view text, size_t i) {
  if (!text.substr(i).starts_with("\xE2\x80") && !text.substr(i).starts_with("\xE2\x81")) return -1;
  if (i + 2 >= text.size()) return -1;
  const auto second = static_cast<unsigned char>(text[i + 1]);
  const int low = ((second & 3) << 6) + (static_cast<unsigned char>(text[i + 2]) & 0x3f);
  const bool turns = (low >= 0x2a && low <= 0x2e) || (low >= 0x66 && low <= 0x69);
  return turns ? low : -1;
}

void append_hex(std::string& out, std::string_view prefix, unsigned byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out.append(prefix);
  out.push_back(kDigits[byte >> 4]);
  out.push_back(kDigits[byte & 0xf]);
}

void append_control(std::string& out, int control) {
  if (control == '\n')
    out.append("\\n");
  else if (control == '\t')
    out.append("\\t");
  else if (control == '\r')
    out.append("\\r");
  else
    append_hex(out, control < 0x80 ? "\\x" : "\\u00", static_cast<unsigned>(control));
}

}  // namespace

size_t first_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    uint64_t word = 0;
    if (i + 8 <= text.size()) {  // eight ASCII bytes at a time: most of most files
      std::memcpy(&word, text.data() + i, 8);
      if ((word & 0x8080808080808080) == 0) {
        i += 8;
        continue;
      }
    }
    const size_t n_bytes = sequence_length(text, i);
    if (n_bytes == 0) return i;
    i += n_bytes;
  }
  return std::string_view::npos;
}

size_t first_control_character(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (control_at(text, i) >= 0) return i;
  return std::string_view::npos;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::optional<size_t> byte_of_character(std::string_view text, size_t place) {
  for (size_t at = 0; at <= text.size(); ++at) {
    if (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) continue;
    if (place-- == 0) return at;
  }
  return std::nullopt;
}

namespace {

template <typename Keeps>
std::string escaped_but(std::string_view text, Keeps keeps) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t n_bytes = sequence_length(text, i);
    const int control = n_bytes == 0 ? -1 : control_at(text, i);
    const int turn = n_bytes == 0 ? -1 : turn_at(text, i);
    if (n_bytes == 0)
      append_hex(out, "\\x", static_cast<unsigned char>(text[i]));
    else if (control >= 0 && !keeps(text[i]))
      append_control(out, control);
    else if (turn >= 0)
      append_hex(out, "\\u20", static_cast<unsigned>(turn));
    else
      out.append(text.substr(i, n_bytes));
    i += n_bytes == 0 ? 1 : n_bytes;
  }
  return out;
}

}  // namespace

std::string escaped(std::string_view text) {
  return escaped_but(text, [](char) { return false; });
}

std::string escaped_lines(std::string_view text) {
  return escaped_but(text, [](char c) { return c == '\n' || c == '\t'; });
}

}  // namespace ferry
