#pragma once
// Faults of libraries that mean that host memory ran out, told as what they are. For whoever
// catches at the end of a verb, or of what may fail alone.

#include <exception>
#include <optional>

#include "src/base/error.h"

namespace ferry {

/** Where `e` says that there was no memory, or none for a thread: Error(does_not_fit) with what to
 * do. Nothing for other faults, and for an Error, which has said it. */
std::optional<Error> out_of_memory(const std::exception& e);

/** The hint for callers that know at once that memory ran out. */
inline constexpr const char* kNoMemoryHint =
    "end other programs, or raise the limit on memory (of the container or service, ulimit -d, "
    "-v); "
    "`ferry train --resume` then goes on from the last checkpoint";

}  // namespace ferry
