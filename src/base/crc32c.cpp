#include "src/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <array>
#include <bit>

namespace ferry {
namespace {

/** Polynomials over GF(2) modulo that of CRC-32C, the highest bit the coefficient of x^0. */
constexpr uint32_t kPolynomial = 0x82F63B78, kOne = 0x80000000, kX = 0x40000000;

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t power = kOne; power != 0; power >>= 1) {
    if (a & power) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

/** x^(2^i). */
constexpr auto kSquares = [] {
  std::array<uint32_t, 64> squares = {kX};
  for (size_t i = 1; i < squares.size(); ++i)
    squares[i] = multiply(squares[i - 1], squares[i - 1]);
  return squares;
}();

uint32_t x_to_the(uint64_t exponent) {
  uint32_t result = kOne;
  for (; exponent != 0; exponent &= exponent - 1)
    result = multiply(result, kSquares[static_cast<size_t>(std::countr_zero(exponent))]);
  return result;
}

}  // namespace

uint32_t crc32c_combine(uint32_t first, uint32_t second, int64_t second_bytes) {
  // A CRC is linear: bytes behind the first run multiply its remainder by x^8 each. The complements
  // at both ends cancel out.
  return multiply(first, x_to_the(8 * static_cast<uint64_t>(second_bytes))) ^ second;
}

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
