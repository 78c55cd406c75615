#pragma once
// Shares of a step for GPUs of different speed, from the time that each takes for the same work.

#include <cstdint>
#include <span>
#include <vector>

#include "src/request/ranks.h"

namespace ferry {

/** The pieces that ranks share: micro-batches of a step, or blocks of the model. */
struct SharedPieces {
  int64_t n = 1;
  /** A step has n micro-batches. Otherwise it may be cut into fewer, of which the shares need no
   * more than their sum. */
  bool is_fixed = false;
};

/** By rank, the pieces that it gets relative to the others: small whole numbers with which the
 * slowest rank of a step ends as early as it can. Each rank gets one at least. Ranks that are
 * nearly as fast as each other get as many. `seconds` are all above zero. */
std::vector<int> shares_by_speed(std::span<const double> seconds, const SharedPieces& pieces);

/** True where the options let ranks get unlike numbers. */
bool may_share_unlike(const config::Config& config, const RunRanks& ranks);
/** The pieces of the run that the options describe, of a model with so many blocks. */
SharedPieces shared_pieces(const config::Config& config, const RunRanks& ranks, int64_t n_blocks);

}  // namespace ferry
