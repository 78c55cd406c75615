#pragma once
// The disk of a directory, past the page cache, as checkpoints are written. Private to src/measure.

#include <filesystem>

#include "src/plan/machine/machine_profile.h"

namespace ferry::measure {

/** Writes up to `most_bytes` into a file without a name and reads them back, for at most `seconds`.
 * Throws Error(machine) where the directory takes none. */
DiskProfile measure_disk(const std::filesystem::path& directory,
                         int64_t most_bytes,
                         double seconds);

}  // namespace ferry::measure
