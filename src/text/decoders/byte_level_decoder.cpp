#include "src/text/decoders/byte_level_decoder.h"

#include <algorithm>

#include "src/base/utf8.h"
#include "src/text/byte_letters.h"

namespace ferry::text {
namespace {

/** How many bytes begin a character of UTF-8 that they do not finish; 1 if the first begins none.
 */
size_t unfinished_size(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = at(0);
  unsigned least = 0x80, most = 0xBF;  // of the second byte
  size_t size = 1;                     // of the whole character
  if (lead >= 0xC2 && lead <= 0xDF) size = 2;
  if (lead >= 0xE0 && lead <= 0xEF) size = 3;
  if (lead >= 0xF0 && lead <= 0xF4) size = 4;
  if (lead == 0xE0) least = 0xA0;
  if (lead == 0xED) most = 0x9F;
  if (lead == 0xF0) least = 0x90;
  if (lead == 0xF4) most = 0x8F;
  size_t n = 1;
  for (; n < size && n < bytes.size() && at(n) >= least && at(n) <= most; ++n) {
    least = 0x80;
    most = 0xBF;
  }
  return n;
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  while (true) {
    const size_t valid = std::min(first_invalid_utf8(bytes), bytes.size());
    text += bytes.substr(0, valid);
    bytes.remove_prefix(valid);
    if (bytes.empty()) return text;
    text += "\uFFFD";
    bytes.remove_prefix(unfinished_size(bytes));
  }
}

std::unique_ptr<Decoder> ByteLevelDecoder::read(const JsonReader&, const StageContext&) {
  return std::make_unique<ByteLevelDecoder>();
}

void ByteLevelDecoder::decode(std::vector<std::string>& tokens) const {
  std::string bytes;
  for (const std::string& token : tokens)
    bytes += bytes_of_letters(token).value_or(token);
  tokens = {valid_utf8(bytes)};
}

}  // namespace ferry::text
