#pragma once
// Signs that the process moves: whoever does a piece of long work notes it, and the watch of the
// trainer (src/train/loop/hang_watch.h) ends a process in which nobody has for long.

#include <chrono>
#include <cstdint>
#include <string>

namespace ferry {

/** A piece of work is done: an action of a step, a piece of a file. From any thread; costs nothing
 * beside any such piece. */
void note_movement();
/** How many were noted so far. */
uint64_t n_movements();

/** The work that a step waits for. */
struct Awaited {
  std::string what;          ///< empty: no step waits for long
  bool is_of_ranks = false;  ///< the oldest piece of it needs other ranks
  bool operator==(const Awaited&) const = default;
};
/** Called by a step whose wait is long, and with nothing when that ends. From any thread. */
void note_awaited(Awaited awaited);
Awaited awaited();

/** How long nothing may move before it counts as hung: FERRY_WATCHDOG_S, else ten minutes. Throws
 * Error(usage) where that is no number of seconds. */
std::chrono::milliseconds hang_patience();

}  // namespace ferry
