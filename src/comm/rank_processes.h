#pragma once
// Ranks of one host that this program starts: it is the first of them, and processes of the same
// program are the others. They find it by the variables that torchrun sets. No torch.

#include <sys/types.h>

#include <string>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/comm/rank_environment.h"

namespace ferry {

class RankProcesses {
 public:
  RankProcesses() = default;
  /** Starts this program with `words` for each rank but the first. Throws Error(machine). */
  RankProcesses(int world, const std::vector<std::string>& words);
  /** Waits for their end, which something has told them; those that go on for 20 seconds are
   * killed. */
  ~RankProcesses();
  RankProcesses(RankProcesses&& other) noexcept;
  RankProcesses& operator=(RankProcesses&& other) noexcept;

  /** The first rank's, and the socket that listens for the others. */
  const RankEnvironment& environment() const { return environment_; }
  UniqueFd take_listener() { return std::move(listener_); }

 private:
  void end() noexcept;

  RankEnvironment environment_;
  UniqueFd listener_;
  std::vector<pid_t> started_;
};

/** For a rank that was started so: it ends when the first rank's process does. */
void end_with_first_rank(const RankEnvironment& environment);

}  // namespace ferry
