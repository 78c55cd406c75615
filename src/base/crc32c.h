#pragma once
// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of a checkpoint's tensors and small files: finds
// every flipped bit and every torn write that a disk passes on silently.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ferry {

/** The CRC of the bytes; to go on over pieces, give what the piece before returned.
 * crc32c("123456789") is 0xE3069283. */
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

/** The CRC of two runs of bytes laid end to end, from the CRC of each and the length of the second.
 * Cost grows with the ones in the length as a binary number. */
uint32_t crc32c_combine(uint32_t first, uint32_t second, int64_t second_bytes);

}  // namespace ferry
