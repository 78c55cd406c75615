#pragma once
// Checksums of the tensors of a checkpoint, which safetensors itself has none of.

#include <cstdint>
#include <map>
#include <string>

#include "src/files/hf/checkpoint_reader.h"

namespace ferry {

/** CRC-32C of each tensor's bytes, by its name in the file. */
using TensorChecksums = std::map<std::string, uint32_t>;

/** Throws Error(data) that names the first tensor that is missing or whose bytes are others. */
void check_checksums(const CheckpointReader& file, const TensorChecksums& checksums);

}  // namespace ferry
