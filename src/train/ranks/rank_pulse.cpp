#include "src/train/ranks/rank_pulse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "src/base/error.h"
#include "src/base/process/movement.h"
#include "src/base/process/supervision.h"
#include "src/train/loop/hang_watch.h"

namespace ferry {
namespace {

constexpr const char* kGoOn =
    "go on from the last complete checkpoint, with the GPUs that are left: ferry train --resume "
    "RUN "
    "--gpus N";

/** Also tells who may start the run anew. */
void leave(const char* where,
           const std::string& what,
           const std::string& why,
           const std::string& hint) {
  tell_supervisor(kToldLoss, what);
  leave_at_once(Error(Fault::machine, where, what + why, hint).what());
}

}  // namespace

std::unique_ptr<Pulse> start_pulse(Comm& comm) {
  const auto lost = [](int /*rank*/, const std::string& what) {
    leave("ranks.lost", what,
          ", so this run cannot go on: the process is stopped, or its machine or the network is "
          "gone",
          fmt::format("{}; FERRY_WATCHDOG_S / 20 is how long a rank is waited for", kGoOn));
  };
  const auto stands = [](const std::string& what) {
    leave("ranks.hang", what, "",
          fmt::format("see `ferry doctor` and the kernel's log on that host; NCCL_DEBUG=INFO shows "
                      "the links between GPUs, NCCL_P2P_DISABLE=1 goes through memory; {}; "
                      "FERRY_WATCHDOG_S / 10 is how long all ranks may stand",
                      kGoOn));
  };
  const auto progress = [] {
    const Awaited its = awaited();
    return RankProgress{n_movements(), its.what, its.is_of_ranks};
  };
  const auto patience = hang_patience();
  // Until there is a pulse, nobody notices a rank that ends, and a call may take a day.
  const auto deadline = comm.deadline();
  comm.set_deadline(std::max<std::chrono::milliseconds>(patience / 10, std::chrono::seconds(30)));
  auto pulse = std::make_unique<Pulse>(comm, PulseOptions{.patience = patience / 20,
                                                          .standstill = patience / 10,
                                                          .progress = progress,
                                                          .lost = lost,
                                                          .stands = stands});
  comm.set_deadline(deadline);
  return pulse;
}

}  // namespace ferry
