#pragma once
// The ranks of a run time the same passes, all at once.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "src/comm/comm.h"
#include "src/measure/rank_speed.h"

namespace ferry {

/** The leader's message that asks for it. */
struct RankTiming {
  bool uses_gpus = false;
  bool only_unlike = false;  ///< only where the GPUs are of several models
  bool deterministic = true;
  int intra_op_threads = 0;  ///< 0: as many as the rank may use
  std::vector<int> gpus;     ///< RunRanks::gpus
  measure::PassSize passes;

  int gpu_of(int local_rank) const {
    return gpus.empty() ? local_rank : gpus[static_cast<size_t>(local_rank)];
  }
};
nlohmann::ordered_json to_json(const RankTiming& timing);
/** Nothing where the message is another one. */
std::optional<RankTiming> timing_in(const nlohmann::ordered_json& message);

/** All ranks call it; `gpu`: index of this rank's. By rank, the seconds that each has taken, 0
 * where that failed. Empty: all have GPUs of one model, and nothing was timed. Throws
 * Error(machine) where this rank's GPU cannot be used. */
std::vector<double> time_ranks(Comm& comm, const RankTiming& timing, int gpu);

}  // namespace ferry
