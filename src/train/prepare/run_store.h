#pragma once
// The store of a job's states and weights on drives, while the job lasts: a training keeps it for
// its checkpoints, other jobs leave nothing. Made before the session, which opens it.

#include <filesystem>
#include <optional>
#include <string>

#include "src/engine/session.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/store/store_files.h"

namespace ferry {

struct Job;

class RunStore {
 public:
  /** `id`: the run's, or one that no other job of this machine has. `place`: of the store that the
   * run has, if it goes on with that. */
  RunStore(std::string id, std::optional<runs::StorePlace> place);

  /** Opens the store that the job's plan asks for, when the session does. Throws as
   * runs::StoreFiles. */
  DriveOptions options(const Job& job);
  /** The store is a run's: its files stay, and run.json tells where. Nothing where no states live
   * on a drive. */
  void keep(Session& session, runs::RunDirectory& run);

 private:
  Disk& open(const Job& job, int64_t n_bytes, std::span<std::byte> window);

  std::string id_;
  std::optional<runs::StorePlace> place_;
  std::optional<runs::StoreFiles> files_;
};

}  // namespace ferry
