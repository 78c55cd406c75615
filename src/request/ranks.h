#pragma once
// The ranks of a run: as many as option gpus says, or as a launcher has started.

#include <optional>
#include <vector>

#include "src/comm/rank_environment.h"
#include "src/config/config.h"

namespace ferry {

struct RunRanks {
  int world = 1;
  std::vector<int> gpus;  ///< by local rank, the index of its GPU; empty: they count from 0
  /** What a launcher has told this process; nothing: the run starts its ranks itself. */
  std::optional<RankEnvironment> launched;

  /** Those of this process's host. */
  int n_of_host() const { return launched ? launched->local_world : world; }
  int gpu_of(int local_rank) const {
    return gpus.empty() ? local_rank : gpus[static_cast<size_t>(local_rank)];
  }
};

/** Throws Error(usage) where the option and the launcher contradict each other, or where a run of
 * several ranks is asked for what it cannot do. */
RunRanks ranks_of(const config::Config& config);

}  // namespace ferry
