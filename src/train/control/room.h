#pragma once
// The files a run writes at its end, on a disk that may be full: it waits for room, and what was
// trained is not lost.

#include <functional>

#include "src/runs/directory/run_directory.h"

namespace ferry {

/** Calls `write` until the disk takes it, every few seconds, so that it has to pass over what it
 * has done; says once that it waits, in run.json too. False where a signal asks the run to leave
 * meanwhile. Other errors than DiskFull go on. */
bool write_when_there_is_room(const std::function<void()>& write, runs::RunDirectory& run);

}  // namespace ferry
