#pragma once
// The processes of a run of several ranks. The first one leads: it is the trainer as with one rank.
// It starts the others, or a launcher has; each of these has a session that follows the leader's.

#include <memory>

#include "src/comm/comm.h"
#include "src/comm/rank_processes.h"
#include "src/engine/ranks/rank_commands.h"
#include "src/request/ranks.h"
#include "src/train/ranks/rank_setup.h"

namespace ferry {

/** What a leading session needs of the other ranks; outlives the session. */
struct LeadingLinks {
  RankGroups groups;
  std::unique_ptr<RankLink> on_host, between_gpus;
  std::unique_ptr<RankLeader> leader;

  RankLink* link() const { return between_gpus ? between_gpus.get() : on_host.get(); }
};

class RankTeam {
 public:
  /** Meets the other ranks. Throws Error(machine) that names those that do not come. */
  explicit RankTeam(const RunRanks& ranks);
  /** The others end. */
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  /** All ranks open a session like this. `setup` is the leader's; so is `shape`, which outlives the
   * links. */
  std::shared_ptr<LeadingLinks> open(const RankSetup& setup, const StepShape& shape);
  const RunRanks& ranks() const { return ranks_; }

 private:
  RunRanks ranks_;
  RankProcesses started_;  ///< ends after comm_, which tells them
  std::unique_ptr<Comm> comm_;
};

/** The rank that a launcher, or the leader, gave this process; 0 where there is none. */
int rank_of_process();

/** The other ranks do this instead of training. Returns the exit code when the leader ends. */
int follow_leader();

}  // namespace ferry
