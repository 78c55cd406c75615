#include "src/data/read/formats/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "src/base/error.h"
#include "src/files/plain_file.h"

namespace ferry {
namespace {

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

/** The line, from 1, of a place in a text. */
int64_t line_of(std::string_view text, size_t place) {
  const std::string_view before = text.substr(0, place);
  return 1 + std::count(before.begin(), before.end(), '\n');
}

/** UTF-16 and UTF-32 of plain letters is valid UTF-8 with a NUL beside each letter, so the mark at
 * the beginning does not tell all. */
void refuse_wide(std::string_view text, const std::filesystem::path& path) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    const int n_bits = text.substr(2).starts_with(std::string_view("\0\0", 2)) ? 32 : 16;
    throw Error(Fault::data, "data.read",
                fmt::format("'{}' is UTF-{}, expected UTF-8", path.string(), n_bits),
                fmt::format("save it as UTF-8, for example: iconv -f UTF-{} -t UTF-8", n_bits));
  }
  const size_t nul = text.find('\0');
  if (nul == text.npos) return;
  const bool is_wide = nul < 2 && std::count(text.begin(), text.end(), '\0') * 4 > std::ssize(text);
  throw Error(Fault::data, "data.read",
              fmt::format("{}:{}: byte {} of the file is 0 (NUL), which no text has", path.string(),
                          line_of(text, nul), nul),
              is_wide ? fmt::format("is it UTF-16? save it as UTF-8, for example: "
                                    "iconv -f UTF-16{} -t UTF-8",
                                    nul % 2 == 1 ? "LE" : "BE")
                      : "is it UTF-16, no text at all, or damaged in this line?");
}

/** Line ends of Macs before 2001 and of some spreadsheets. */
void unify_line_ends(std::string& text) {
  if (text.find('\n') == text.npos) std::replace(text.begin(), text.end(), '\r', '\n');
}

}  // namespace

TextFile load_text_file(const std::filesystem::path& path, TextEncoding encoding) {
  const auto descriptor = descriptor_of(path);
  TextFile file{.text = descriptor ? read_stream(*descriptor, fmt::format("'{}'", path.string()))
                                   : read_text_file(path, std::numeric_limits<size_t>::max())};
  refuse_wide(file.text, path);
  const size_t invalid = encoding == TextEncoding::latin1 ? 0 : first_invalid_utf8(file.text);
  if (invalid != std::string::npos && encoding == TextEncoding::utf8) {
    throw Error(Fault::data, "data.read",
                fmt::format("{}:{}: byte {} of the file (0x{:02x}) is not valid UTF-8",
                            path.string(), line_of(file.text, invalid), invalid,
                            static_cast<unsigned char>(file.text[invalid])),
                "save the file as UTF-8, or read it with dataset_encoding = utf8_or_latin1");
  }
  if (invalid != std::string::npos) {
    file.text = latin1_to_utf8(file.text);
    file.was_latin1 = true;
  } else if (file.text.starts_with("\xef\xbb\xbf")) {
    file.text.erase(0, 3);
  }
  unify_line_ends(file.text);
  return file;
}

}  // namespace ferry
