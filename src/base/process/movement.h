#pragma once
// Signs that the process moves: whoever does a piece of long work notes it, and the watch of the
// trainer (src/train/loop/hang_watch.h) ends a process in which nobody has for long.

#include <chrono>
#include <cstdint>

namespace ferry {

/** A piece of work is done: an action of a step, a piece of a file. From any thread; costs nothing
 * beside any such piece. */
void note_movement();
/** How many were noted so far. */
uint64_t n_movements();

/** How long nothing may move before it counts as hung: FERRY_WATCHDOG_S, else ten minutes. Throws
 * Error(usage) where that is no number of seconds. */
std::chrono::milliseconds hang_patience();

}  // namespace ferry
