#pragma once
// Exchanges between ranks of a machine and their times: collectives of NCCL between GPUs, or of
// Ferry over Gloo between processes of the CPU. All ranks measure together, the first one tells.
// Private to src/measure, but for its tests.

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/bytes.h"
#include "src/comm/collectives.h"
#include "src/plan/machine/machine_profile.h"

namespace ferry::measure {

inline constexpr int64_t kMessage_bytes_least = 4 * kKiB, kMessage_bytes_most = 256 * kMiB;

/** One operation with one size, which is that of the buffer of all ranks' values where a rank has
 * one. */
struct ExchangeTime {
  std::string_view operation;  ///< "all-gather"
  int64_t n_bytes = 0;
  double seconds = 0;
  double bytes_per_s = 0;  ///< n_bytes over the time: nccl-tests' algorithm bandwidth
  /** The same times the part of the bytes that crosses each rank's link: nccl-tests' bus bandwidth.
   */
  double bus_bytes_per_s = 0;
};

struct ExchangeBench {
  std::vector<ExchangeTime> times;  ///< by operation, then size
  ExchangeProfile profile;          ///< what a plan goes by
};

struct ExchangeOptions {
  int64_t bytes_max = kMessage_bytes_most;  ///< of an operation
  double seconds = 12;                      ///< about what all of them may take
};

/** All ranks call it. Throws Error(machine) where an operation gave other values than it should. */
ExchangeBench measure_exchanges(Comm& comm,
                                Collectives& collectives,
                                const ExchangeOptions& options);

}  // namespace ferry::measure
