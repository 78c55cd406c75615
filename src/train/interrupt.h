#pragma once
// Ctrl-C, SIGTERM, SIGHUP: the first asks the loop to save and leave, the second leaves at once.

namespace ferry {

/** Exit code of a run that was interrupted (design 6). */
inline constexpr int kInterruptedExit = 130;

/** Installs the handlers, but for signals that the process was started to ignore (nohup); before
 * that, and without it, the signals end the process as usual. */
void catch_interrupts();
/** Whether one has come. */
bool is_interrupted();

}  // namespace ferry
