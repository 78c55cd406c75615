#pragma once
// NCCL carries the bytes that ranks send each other between GPUs. LibTorch's copy of NCCL does the
// work: no second copy is loaded, and a program with one rank needs none.

#include <chrono>
#include <memory>

#include "offload/executor/rank_link.h"
#include "offload/step/ranks.h"

namespace ferry {

struct NcclOptions {
  int device = 0;  ///< index of this rank's GPU
  /** The time in which all ranks have to come to the meeting. */
  std::chrono::seconds deadline{60};
};

/** Meets the other ranks, whose calls come at the same time. `host` carries values of the host, and
 * outlives the link. Throws Error(machine) where NCCL is not there, or where the ranks do not find
 * each other. */
std::unique_ptr<RankLink> make_nccl_link(const Ranks& ranks,
                                         RankLink& host,
                                         const NcclOptions& options);

}  // namespace ferry
