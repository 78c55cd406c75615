#pragma once
// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of a checkpoint's tensors and small files: finds
// every flipped bit and every torn write that a disk passes on silently.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ferry {

/** Of the bytes; to go on over pieces, give what the piece before returned. crc32c("123456789") is
 * 0xE3069283. */
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

}  // namespace ferry
