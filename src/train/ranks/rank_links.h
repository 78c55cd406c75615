#pragma once
// All that a rank's session needs to talk with the other ranks' sessions.

#include <memory>

#include "src/engine/ranks/rank_commands.h"

namespace ferry {

/** Outlives the session. */
struct RankLinks {
  RankGroups groups;
  std::unique_ptr<RankLink> on_host, between_gpus;
  /** The same to the ranks that share tokens; null: none do. */
  std::unique_ptr<RankLink> tokens_on_host, tokens_between_gpus;

  RankLink* link() const { return between_gpus ? between_gpus.get() : on_host.get(); }
  RankLink* token_link() const {
    return tokens_between_gpus ? tokens_between_gpus.get() : tokens_on_host.get();
  }
};

/** All ranks call it; `gpu`: index of this rank's, where the shape is of GPUs. Throws
 * Error(machine) where the GPUs do not meet. */
RankLinks make_rank_links(Comm& comm, const StepShape& shape, int gpu);

}  // namespace ferry
