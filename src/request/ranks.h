#pragma once
// The ranks of a run: as many as the options gpus and nnodes say, or as a launcher has started.
// They are numbered host by host.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/sharing.h"
#include "src/comm/rank_environment.h"
#include "src/config/config.h"

namespace ferry {

/** Who says how fast a run's ranks are (option gpu_shares). */
enum class SharesBy : uint8_t {
  models,    ///< nobody yet: GPUs of one model get as many, those of several models are measured
  settings,  ///< they name the shares
  to_be_measured,  ///< Ferry, once the ranks have met
  measured         ///< Ferry has, and a run keeps it
};

struct RunRanks {
  int world = 1;
  int local_world = 1;  ///< ranks of this host, which share its memory and its cores
  int n_hosts = 1, host = 0;
  std::vector<std::string>
      hosts;  ///< those that host 0, which this is, starts by ssh; itself first
  /** By rank, the micro-batches that it gets, relative to the others; empty: all get as many. */
  std::vector<int> shares;
  SharesBy shares_by = SharesBy::models;
  std::vector<int> gpus;  ///< by local rank, the index of its GPU; empty: they count from 0
  /** This process's place, as a launcher or the options of several hosts give it. Nothing: it leads
   * the ranks of this host, which are all. */
  std::optional<RankEnvironment> place;
  /** A launcher has started all ranks; otherwise the first process of a host starts the others of
   * the host. */
  bool is_launched = false;

  bool measures_shares() const {
    return shares_by == SharesBy::to_be_measured || shares_by == SharesBy::measured;
  }
  /** Ranks may get unlike numbers, as was asked for. */
  bool may_be_unlike() const { return !shares.empty() || shares_by == SharesBy::to_be_measured; }
  bool follows() const { return place && place->rank > 0; }
  int gpu_of(int local_rank) const {
    return gpus.empty() ? local_rank : gpus[static_cast<size_t>(local_rank)];
  }
};

/** Throws Error(usage) where the options and the launcher contradict each other, or where a run of
 * several ranks is asked for what it cannot do. The place stays empty where the options of several
 * hosts say too little for one. */
RunRanks ranks_of(const config::Config& config);

/** The same for a run that starts now. Throws Error(usage), too, where its hosts could not meet. */
RunRanks ranks_to_start(const config::Config& config);

/** The stages of each replica that the options gpu_split and pipe_size ask for; nothing: the
 * planner chooses. Throws Error(usage) where they contradict each other or the number of ranks. */
std::optional<int> n_stages_of(const config::Config& config, const RunRanks& ranks);
/** The ranks that share each micro-batch, as the options sp_size and tp_size say. Throws
 * Error(usage) where they contradict other options or the number of ranks. */
Sharing sharing_of(const config::Config& config, const RunRanks& ranks);
/** Option pipe_chunks. Throws Error(usage) where there are no stages. */
int n_chunks_of(const config::Config& config, std::optional<int> n_stages);

/** Keeps shares that were measured. A run that goes on with other GPUs measures them anew where it
 * was asked to measure. */
void keep_shares(config::Config& config, const RunRanks& ranks, const std::vector<int>& shares);
/** The index of a rank's GPU on its host, as the option gpus says. */
int gpu_of_rank(const config::Config& config, int local_rank);

}  // namespace ferry
