#include "src/train/ranks/rank_pulse.h"

#include "src/base/error.h"
#include "src/base/process/movement.h"
#include "src/base/process/supervision.h"
#include "src/train/loop/hang_watch.h"

namespace ferry {

std::unique_ptr<Pulse> start_pulse(Comm& comm) {
  const auto lost = [](int /*rank*/, const std::string& what) {
    tell_supervisor(kToldLoss, what);
    leave_at_once(
        Error(Fault::machine, "ranks.lost",
              what + ", so this run cannot go on: the process is stopped, or its machine or "
                     "the network is gone",
              "go on from the last complete checkpoint, with the GPUs that are left: ferry "
              "train --resume RUN --gpus N; FERRY_WATCHDOG_S / 20 is how long a rank is waited for")
            .what());
  };
  return std::make_unique<Pulse>(comm,
                                 PulseOptions{.patience = hang_patience() / 20, .lost = lost});
}

}  // namespace ferry
