#pragma once
// A trainer that is started anew where it dies, and the process that watches it: `ferry train` with
// max_restarts (src/cli/restarts.h). The trainer tells what the watcher cannot see.

#include <optional>
#include <string>
#include <string_view>

namespace ferry {

/** Variables of a supervised trainer: the file descriptor that it tells its watcher by, and of a
 * restart which one it is and why, as restart_of_this_process() gives it. */
inline constexpr const char *kSupervisorVariable = "FERRY_SUPERVISOR",
                            *kRestartVariable = "FERRY_RESTART";

/** The facts that a trainer tells, a line each. */
inline constexpr std::string_view kToldRun = "run ",  // the directory that a restart resumes
    kToldLoss = "lost ";                              // why it fails, where a restart may help

/** In the trainer, before it starts processes or threads: takes the variables out of the
 * environment. The trainer is killed where its watcher ends. */
void take_supervision();
/** True where a watcher starts this trainer anew. */
bool is_supervised();
/** "1 of 3: rank 2 is gone"; nothing where this is the first start. */
const std::optional<std::string>& restart_of_this_process();
/** `told`: one of the words above. Nobody hears where there is no watcher. */
void tell_supervisor(std::string_view told, std::string_view text);

}  // namespace ferry
