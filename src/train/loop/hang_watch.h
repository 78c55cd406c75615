#pragma once
// The last word on a hang. The executor's watchdog ends a step that stands still, but what unwinds
// then waits for the work that hangs, and a disk or a driver may hold any thread in a call that
// never returns. So a thread of its own ends the process.

#include <filesystem>
#include <string>

namespace ferry {

/** From now on, and until the process ends, nothing may stand still for twice hang_patience(): the
 * process then says so and leaves with exit code 5; the run goes on from its last complete
 * checkpoint. Waits are counted, not the clock read: a process that was stopped and continued has
 * not hung; nor has one whose output a terminal or a pipe holds back. Once in a process. */
void watch_for_hangs(const std::filesystem::path& run);

/** Says the text and leaves with exit code 5, whatever other threads wait for. */
[[noreturn]] void leave_at_once(const std::string& text);

}  // namespace ferry
