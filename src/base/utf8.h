#pragma once
// Is it UTF-8, and may it be printed: what every room asks of bytes that it did not write itself.
// Error escapes its messages with it; the data and text rooms check their files.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace ferry {

/** Bytes that some programs begin a UTF-8 file with. */
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/** Offset of the first byte that begins no valid UTF-8 sequence (overlong forms, surrogates and
 * what lies above U+10FFFF are not valid), or npos. */
size_t first_invalid_utf8(std::string_view text);

/** Offset of the first control character (below U+0020, DEL, U+0080 to U+009F) of valid UTF-8, or
 * npos. A terminal may obey them. */
size_t first_control_character(std::string_view text);

/** The number of code points of valid UTF-8: what Python and the hub's data count places in. */
size_t count_characters(std::string_view text);
/** Offset of the code point at that place, from 0; the end has a place, too. Nothing past it. */
std::optional<size_t> byte_of_character(std::string_view text, size_t place);

/** The text fit for a line of a terminal or log: control characters as \n, \x1b, \u009b, those that
 * turn the direction of text as \u202e, bytes that are not UTF-8 as \xff, all else as it is. For
 * reading, not for turning back. */
std::string escaped(std::string_view text);
/** The same for text of several lines: newlines and tabs stay. */
std::string escaped_lines(std::string_view text);

}  // namespace ferry
