#pragma once
// Ctrl-C, SIGTERM, SIGHUP. While data and weights are prepared one of them leaves at once; while
// the run trains the first asks the loop to save and leave, and the second leaves at once.

#include <filesystem>

namespace ferry {

/** Exit code of a run that was interrupted. */
inline constexpr int kInterruptedExit = 130;

/** Installs the handlers, but for signals that the process was started to ignore (nohup); before
 * that, and without it, the signals end the process as usual. Until save_on_interrupts() the
 * process leaves at once: there is nothing to save. */
void catch_interrupts();
/** Until save_on_interrupts() a signal removes this run's directory, if nothing but a run.json is
 * in it; an empty path: none. */
void leave_on_interrupts(const std::filesystem::path& directory);
/** From now on there is work that the first signal must not lose. */
void save_on_interrupts();
/** True once a signal has come. */
bool is_interrupted();

}  // namespace ferry
