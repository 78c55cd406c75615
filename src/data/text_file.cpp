#include "src/data/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "src/base/error.h"

namespace ferry {
namespace {

std::string read_bytes(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code))
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' is a directory, expected a file", path.string()));
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' cannot be opened: {}", path.string(),
                            std::generic_category().message(errno)),
                "check the path");
  std::string bytes;
  const auto n_bytes = std::filesystem::file_size(path, code);
  if (!code) bytes.reserve(n_bytes);
  char piece[1 << 16];
  while (stream.read(piece, sizeof piece) || stream.gcount() > 0)
    bytes.append(piece, static_cast<size_t>(stream.gcount()));
  if (stream.bad())
    throw Error(Fault::machine, "data.read",
                fmt::format("'{}' cannot be read: {}", path.string(),
                            std::generic_category().message(errno)));
  return bytes;
}

std::string latin1_to_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 16);
  for (char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text.push_back(c);
    } else {
      text.push_back(static_cast<char>(0xc0 | byte >> 6));
      text.push_back(static_cast<char>(0x80 | (byte & 0x3f)));
    }
  }
  return text;
}

}  // namespace

size_t first_invalid_utf8(std::string_view text) {
  const auto at = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
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
    const unsigned lead = at(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
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
      return i;
    if (at(i + 1) < low || at(i + 1) > high) return i;
    for (size_t k = 2; k < n_bytes; ++k)
      if (at(i + k) < 0x80 || at(i + k) > 0xbf) return i;
    i += n_bytes;
  }
  return std::string_view::npos;
}

TextFile load_text_file(const std::filesystem::path& path, TextEncoding encoding) {
  TextFile file{.text = read_bytes(path)};
  if (file.text.starts_with("\xff\xfe") || file.text.starts_with("\xfe\xff"))
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' is UTF-16, expected UTF-8", path.string()),
                "save it as UTF-8, for example: iconv -f UTF-16 -t UTF-8");
  const size_t invalid = encoding == TextEncoding::latin1 ? 0 : first_invalid_utf8(file.text);
  if (invalid != std::string::npos && encoding == TextEncoding::utf8) {
    const auto line =
        1 + std::count(file.text.begin(), file.text.begin() + static_cast<std::ptrdiff_t>(invalid),
                       '\n');
    throw Error(
        Fault::data, "data.read",
        fmt::format("{}:{}: byte {} of the file (0x{:02x}) is not valid UTF-8", path.string(), line,
                    invalid, static_cast<unsigned char>(file.text[invalid])),
        "save the file as UTF-8, or read it with dataset_encoding = utf8_or_latin1");
  }
  if (invalid != std::string::npos) {
    file.text = latin1_to_utf8(file.text);
    file.was_latin1 = true;
  } else if (file.text.starts_with("\xef\xbb\xbf")) {
    file.text.erase(0, 3);
  }
  return file;
}

}  // namespace ferry
