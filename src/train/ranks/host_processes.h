#pragma once
// The other hosts of a run, where this one starts them: `ssh HOST ferry train ...` for each. What
// they say is said here, with the host's name before each line.

#include <sys/types.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "src/base/unique_fd.h"
#include "src/request/ranks.h"

namespace ferry {

class HostProcesses {
 public:
  HostProcesses() = default;
  /** Waits until they end; ends those that have not done so within 20 s, or at once where the ranks
   * have not met. */
  ~HostProcesses();
  HostProcesses(const HostProcesses&) = delete;
  HostProcesses& operator=(const HostProcesses&) = delete;

  /** `port`: of this host, where they meet. Called once, by a thread that lives as long as this
   * object. Throws Error(machine) where there is no ssh. */
  void start(const config::Config& config, const RunRanks& ranks, int port);
  /** Until they have met: throws Error(machine) that names a host whose command has ended. */
  void check();
  void note_meeting() { have_met_ = true; }

 private:
  struct Host {
    std::string name;
    pid_t pid;
    std::jthread listener;  ///< says what the host says, until it is silent for good
  };

  void await_until(std::chrono::steady_clock::time_point end);

  std::string program_;
  std::vector<Host> hosts_;
  bool have_met_ = false;
};

}  // namespace ferry
