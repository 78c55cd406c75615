#pragma once
// The rank that leads a run of several ranks: it is the trainer as with one rank. It starts the
// others of its host, or a launcher has. Each of them has a session that follows the leader's
// (following.h).

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "src/comm/comm.h"
#include "src/comm/pulse.h"
#include "src/comm/rank_processes.h"
#include "src/request/ranks.h"
#include "src/train/ranks/host_processes.h"
#include "src/train/ranks/rank_links.h"
#include "src/train/ranks/rank_setup.h"
#include "src/train/ranks/rank_timing.h"

namespace ferry {

/** What a leading session needs of the other ranks; outlives the session. */
struct LeadingLinks : RankLinks {
  std::unique_ptr<RankLeader> leader;
};

class RankTeam {
 public:
  /** Meets the other ranks. Throws Error(machine) that names those that do not come in time, and
   * Error(usage) where this host cannot be the one to meet at. */
  RankTeam(const RunRanks& ranks, const config::Config& config);
  /** The others end, too; without a call of end() as after a failure. */
  ~RankTeam();
  RankTeam(const RankTeam&) = delete;
  RankTeam& operator=(const RankTeam&) = delete;

  /** All ranks do time_ranks(). No session is open. */
  std::vector<double> time_ranks(const RankTiming& timing);
  /** All ranks open a session like this. `setup` is the leader's; so is `shape`, which outlives the
   * links. */
  std::shared_ptr<LeadingLinks> open(const RankSetup& setup, const StepShape& shape);
  /** Tells the others how the run has ended. No session is open any more. */
  void end(int exit_code, const std::string& reason) noexcept;
  /** After end(): true where a process of this host has ended for a reason that would come again.
   * Waits a little for them. */
  bool has_failed_by_itself() { return processes_.have_failed_by_themselves(); }
  const RunRanks& ranks() const { return ranks_; }

 private:
  RunRanks ranks_;
  RankProcesses processes_;
  HostProcesses hosts_;
  std::unique_ptr<Comm> comm_;
  std::unique_ptr<Pulse> pulse_;
};

/** The time in which all ranks must have come. */
std::chrono::seconds patience_for_ranks(const config::Config& config);

}  // namespace ferry
