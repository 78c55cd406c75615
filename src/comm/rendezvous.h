#pragma once
// Connects the ranks of a run: they meet at a store (c10d's TCPStore) and then send bytes to each
// other directly, by Gloo. gloo_comm.cpp does it, or no_gloo_comm.cpp in a build without Gloo's
// headers. No torch header.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "src/base/unique_fd.h"
#include "src/comm/comm.h"
#include "src/comm/rank_environment.h"

namespace ferry {

inline constexpr std::chrono::seconds kConnectDeadline{300};

struct ConnectOptions {
  /** The time that each call of the ranks has. */
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
  /** The time until all ranks have come. Programs start at different times. */
  std::chrono::milliseconds connect_deadline = kConnectDeadline;
  /** The network that the ranks talk over, as an interface ("eth0") or as a name or an address of
   * this host. Where both are empty: loopback within one host, otherwise the address from which
   * this host reaches the master. */
  std::string interface, host_name;
  /** For rank 0, where it serves the store: the socket for it, which listens already. Without one
   * rank 0 listens at the master's port. */
  UniqueFd listener;
  /** Called several times a second until all ranks are connected, and while they connect for a
   * group; what it throws ends that. As long as the Comm and its groups live. */
  std::function<void()> while_waiting = {};
};

/** False in a build without Gloo's headers: a run then has one rank. */
bool has_gloo();

/** Returns once all ranks have come and are connected. The process ignores SIGPIPE from then on,
 * and LibTorch's log is silent unless TORCH_CPP_LOG_LEVEL is set. Throws Error that names the ranks
 * that are missing, or says what is wrong with the place to meet. A rank 0 that serves the store
 * serves it as long as its Comm, or a group split off it, lives. */
std::unique_ptr<Comm> connect(const RankEnvironment& environment, ConnectOptions options);

}  // namespace ferry
