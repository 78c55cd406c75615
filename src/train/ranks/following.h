#pragma once
// The other ranks do this instead of training: their sessions follow the leader's until it says how
// the run has ended. Each function gives the exit code of this process, which is the leader's, and
// throws Error where the leader is lost.

#include <chrono>
#include <string>
#include <vector>

#include "src/comm/rank_processes.h"
#include "src/config/config.h"
#include "src/request/ranks.h"

namespace ferry {

/** A rank that a launcher has started. */
int follow_as_launched();

/** The first rank of a host that does not lead, as the options of several hosts say. It starts the
 * others of its host, and says what it waits for and how the run has ended. */
int follow_as_host(const config::Config& config);

/** The words with which the first rank of a host starts the others. They wait as long for all ranks
 * as it does. `ranks` outlives them. */
RankProcesses::Words words_of_child(const RunRanks& ranks, std::chrono::seconds patience);
/** A rank that was started so. */
int follow_as_child(const std::vector<std::string>& words);

/** The rank of this process, for messages. */
int rank_of_process();

}  // namespace ferry
