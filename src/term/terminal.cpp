#include "src/term/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>

namespace ferry::term {

namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool locale_is_utf8() {
  for (const char* name :
       {"LC_ALL", "LC_CTYPE", "LANG"}) {  // the first that is set decides, as in the C library
    std::string value(variable(name));
    if (value.empty()) continue;
    std::transform(value.begin(), value.end(), value.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

struct Character {
  uint32_t code;   // 0xfffd for a byte that is no UTF-8
  size_t n_bytes;  // 1 to 4
};

/** The first character of non-empty text. */
Character first_character(std::string_view text) {
  constexpr Character kBroken = {0xfffd, 1};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  size_t n_bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < n_bytes) return kBroken;
  uint32_t code = byte(0) & (0xffu >> (n_bytes + 1));
  for (size_t i = 1; i < n_bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return kBroken;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLeast[n_bytes] || code > 0x10ffff || is_surrogate ? kBroken
                                                                   : Character{code, n_bytes};
}

bool is_within(uint32_t code, const uint32_t (*ranges)[2], size_t n_ranges) {
  return std::any_of(ranges, ranges + n_ranges,
                     [&](const uint32_t(&r)[2]) { return code >= r[0] && code <= r[1]; });
}

int width_of(uint32_t code) {
  static constexpr uint32_t kZero[][2] = {{0x300, 0x36f},   {0x200b, 0x200f}, {0x202a, 0x202e},
                                          {0x2060, 0x206f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f},
                                          {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}};
  static constexpr uint32_t kTwo[][2] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0xa4cf},
                                         {0xac00, 0xd7a3},   {0xf900, 0xfaff},  {0xfe30, 0xfe6f},
                                         {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                                         {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  if (is_within(code, kZero, std::size(kZero))) return 0;
  return is_within(code, kTwo, std::size(kTwo)) ? 2 : 1;
}

/** Control characters, C1 ones and those that turn the direction of writing. */
bool is_dangerous(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x202a && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

Terminal detect_terminal(int descriptor) {
  Terminal terminal;
  terminal.is_terminal = isatty(descriptor) != 0;
  terminal.has_utf8 = locale_is_utf8();
  terminal.has_color =
      terminal.is_terminal && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  winsize size{};
  if (terminal.is_terminal && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    terminal.width = size.ws_col;
  else if (int columns = std::atoi(std::string(variable("COLUMNS")).c_str()); columns > 0)
    terminal.width = columns;
  terminal.width = std::clamp(terminal.width, 20, 1000);
  return terminal;
}

std::string styled(std::string_view text, Style style, const Terminal& terminal) {
  if (!terminal.has_color) return std::string(text);
  constexpr int kCodes[] = {1, 2, 31, 32, 33, 36};
  return fmt::format("\x1b[{}m{}\x1b[0m", kCodes[static_cast<int>(style)], text);
}

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    Character character = first_character(text);
    width += width_of(character.code);
    text.remove_prefix(character.n_bytes);
  }
  return width;
}

std::string printable(std::string_view text, const Terminal& terminal) {
  std::string result;
  while (!text.empty()) {
    Character character = first_character(text);
    bool is_shown = !is_dangerous(character.code) &&
                    !(character.code == 0xfffd && character.n_bytes == 1) &&
                    (character.code < 0x80 || terminal.has_utf8);
    if (is_shown)
      result += text.substr(0, character.n_bytes);
    else
      result += '?';
    text.remove_prefix(character.n_bytes);
  }
  return result;
}

std::string fitted(std::string_view text, int width, const Terminal& terminal) {
  const std::string shown = printable(text, terminal);
  if (display_width(shown) <= width) return shown;
  std::string result;
  std::string_view rest = shown;
  for (int left = width - 1; left > 0 && !rest.empty();) {
    Character character = first_character(rest);
    left -= width_of(character.code);
    if (left < 0) break;
    result += rest.substr(0, character.n_bytes);
    rest.remove_prefix(character.n_bytes);
  }
  if (width < 1) return {};
  return result + (terminal.has_utf8 ? "…" : "~");
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "?";
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  if (whole < 86400) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  return fmt::format("{} d {} h", whole / 86400, whole % 86400 / 3600);
}

}  // namespace ferry::term
