#include "src/files/safetensors/tensor_checksums.h"

#include <fmt/format.h>

#include "src/base/crc32c.h"
#include "src/base/error.h"

namespace ferry {

void check_checksums(const CheckpointReader& file, const TensorChecksums& checksums) {
  for (const auto& [name, checksum] : checksums) {
    const StoredTensor& tensor = file.get(name);
    uint32_t found = 0;
    file.read(tensor,
              [&](std::span<const std::byte> bytes, size_t) { found = crc32c(bytes, found); });
    if (found == checksum) continue;
    throw Error(
        Fault::data, "checkpoint.read",
        fmt::format("'{}': tensor '{}' is damaged: its CRC-32C is {:08x}, {:08x} was written",
                    file.path().string(), name, found, checksum),
        "resume from an earlier checkpoint, and check the disk");
  }
}

}  // namespace ferry
