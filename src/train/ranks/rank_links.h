#pragma once
// All that a rank's session needs to talk with the other ranks' sessions.

#include <memory>

#include "src/engine/ranks/rank_commands.h"

namespace ferry {

/** Outlives the session. */
struct RankLinks {
  RankGroups groups;
  std::unique_ptr<RankLink> on_host, between_gpus;
  /** The same to the ranks that share micro-batches; null: none do. */
  std::unique_ptr<RankLink> sharing_on_host, sharing_between_gpus;

  RankLink* link() const { return between_gpus ? between_gpus.get() : on_host.get(); }
  RankLink* sharing_link() const {
    return sharing_between_gpus ? sharing_between_gpus.get() : sharing_on_host.get();
  }
};

/** All ranks call it; `gpu`: index of this rank's, where the shape is of GPUs. Throws
 * Error(machine) where the GPUs do not meet. */
RankLinks make_rank_links(Comm& comm, const StepShape& shape, int gpu);

}  // namespace ferry
