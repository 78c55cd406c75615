#pragma once
// The processes of the other ranks of this host. Each finds the leader by the variables that
// torchrun sets, and is killed where the process that started it ends.

#include <sys/types.h>

#include <chrono>
#include <vector>

#include "src/request/ranks.h"

namespace ferry {

class RankProcesses {
 public:
  RankProcesses() = default;
  /** Waits until they end; kills those that have not done so within 20 s, or a second where they
   * have not met. */
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /** Starts all ranks of this host but its first one, whose place is `first`. They wait as long for
   * all ranks as this process does. Called once, by a thread that lives as long as this object.
   * Throws Error(machine). */
  void start(const RankEnvironment& first, const RunRanks& ranks, std::chrono::seconds patience);
  /** Until they have met: throws Error(machine) where one has ended. */
  void check();
  void note_meeting() { have_met_ = true; }
  /** True where one has ended by a fault of settings, data or memory; waits up to 5 s for all. */
  bool have_failed_by_themselves();

 private:
  struct Process {
    int rank;
    pid_t pid;
  };
  /** Waits for those that still run. */
  void await_until(std::chrono::steady_clock::time_point end);

  std::vector<Process> processes_;
  std::vector<int> ends_;  ///< of waitpid, of those that have ended
  bool have_met_ = false;
};

}  // namespace ferry
