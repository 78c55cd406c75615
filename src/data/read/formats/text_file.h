#pragma once
// A text file as valid UTF-8: byte order mark off, encoding checked, errors with line and byte.
// Lines end in LF or CRLF, which the parsers tell apart; a file of CR alone has LF in its place.
// Private to src/data: every reader gets its text here.

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/base/utf8.h"

namespace ferry {

enum class TextEncoding : uint8_t {
  utf8,            // anything else is an error
  latin1,          // every byte is a character
  utf8_or_latin1,  // by file: Latin-1 where it is not valid UTF-8
};

struct TextFile {
  std::string text;
  bool was_latin1 = false;
};

/** Error(data): missing, unreadable, UTF-16, a NUL or invalid UTF-8 (file:line and byte offset in
 * the file). */
TextFile load_text_file(const std::filesystem::path& path, TextEncoding encoding);

}  // namespace ferry
