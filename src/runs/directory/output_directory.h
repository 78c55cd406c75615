#pragma once
// Checks that a new run may be written to a directory: into a new or an empty one only.

#include <filesystem>

namespace ferry::runs {

/** Throws Error(usage) where the directory holds a run, a model or anything else; what a start that
 * was killed at once has left is no hindrance. */
void check_unused(const std::filesystem::path& directory);

}  // namespace ferry::runs
