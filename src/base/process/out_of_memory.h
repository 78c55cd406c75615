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

/** Keeps 1 MiB back, which the first `new` that fails gives free before it throws: what is told and
 * tidied up after a failure needs memory, too, and a JSON value ends the process where its
 * destructor has none. To be called again where a program goes on after a failure; a reserve that
 * is there stays. Any thread may call it. */
void keep_memory_reserve();

/** An exception that nobody can catch (in a thread, a destructor, before main) and that says so
 * ends the process with the message and the exit code of does_not_fit, in place of an abort. Others
 * abort as before. Called first in main. */
void end_on_lost_memory();

/** The hint for callers that know at once that memory ran out. */
inline constexpr const char* kNoMemoryHint =
    "end other programs, or raise the limit on memory (of the container or service, ulimit -d, "
    "-v); "
    "`ferry train --resume` then goes on from the last checkpoint";

}  // namespace ferry
