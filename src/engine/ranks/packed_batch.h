#pragma once
// A micro-batch as bytes, on its way from one rank to another of the same program.

#include <cstddef>
#include <span>
#include <vector>

#include "src/engine/host_batch.h"

namespace ferry {

std::vector<std::byte> pack(const HostBatch& batch);

/** What pack() wrote. The batch shows the bytes, which outlive it and begin at 8 bytes. */
HostBatch unpack(std::span<const std::byte> bytes);

}  // namespace ferry
