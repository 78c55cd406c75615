#pragma once
// The processes of the other ranks of this host, which this program starts. Each finds the first
// rank by the variables that torchrun sets, and ends where the process that started it does. No
// torch.

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "src/comm/rank_environment.h"

namespace ferry {

class RankProcesses {
 public:
  RankProcesses() = default;
  /** Waits until they end; kills those that have not done so within 20 s, or a second where they
   * have not met. */
  ~RankProcesses();
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  /** The words with which this program is started for a rank, without its name. */
  using Words = std::function<std::vector<std::string>(int local_rank)>;
  /** Starts all ranks of this host but its first one, whose place is `first`. Called once, by a
   * thread that lives as long as this object. Throws Error(machine). */
  void start(const RankEnvironment& first, const Words& words);
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

/** For a process that was started so: it is killed when `parent`, which started it, ends. Throws
 * Error(machine) where that has ended already. */
void end_with_parent(pid_t parent);

}  // namespace ferry
