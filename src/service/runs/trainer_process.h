#pragma once
// The trainer's process of a run on this machine, reached by signals: before it takes requests, and
// where it does not answer them.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "src/base/unique_fd.h"

namespace ferry::service {

/** The process that run.json names, if it is on this machine, this user's, and has the run's
 * directory open: a number that went to another process since is none. A pidfd: it never means
 * another process. */
UniqueFd find_trainer_process(const std::filesystem::path& run,
                              const nlohmann::ordered_json& record);

/** Sends it SIGINT, which ends a run that has nothing to save yet. Throws Error(machine) where it
 * is not on this machine. */
void interrupt_trainer(const std::filesystem::path& run);
/** Sends it SIGKILL: what is not in a checkpoint is lost. Throws likewise. */
void kill_trainer(const std::filesystem::path& run);

}  // namespace ferry::service
