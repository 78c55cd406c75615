#include "src/files/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace ferry {

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  // ISA-L starts from and returns the register itself; the CRC is its complement. Lengths are int.
  constexpr size_t kPiece_bytes = size_t{1} << 30;
  uint32_t state = ~before;
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), kPiece_bytes));
    // The header takes bytes as not const, and only reads them.
    auto* data = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(piece.data()));
    state = crc32_iscsi(data, static_cast<int>(piece.size()), state);
    bytes = bytes.subspan(piece.size());
  }
  return ~state;
}

}  // namespace ferry
