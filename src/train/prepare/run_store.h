#pragma once
// The store of a job's states and weights on drives, while the job lasts: a training keeps it for
// its checkpoints, other jobs leave nothing. Made before the session, which opens it.

#include <filesystem>
#include <optional>
#include <string>

#include "src/engine/session.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/directory/run_directory.h"
#include "src/runs/store/pin_record.h"
#include "src/runs/store/store_files.h"
#include "src/train/prepare/machine.h"

namespace ferry {

struct Job;

/** The store of a session that leaves none: of a model that is only asked, or of a rank's part of
 * the states, which checkpoints hold. Its files have no names once it is open, so they end with the
 * process. */
class PassingStore {
 public:
  /** The process among those of its run on this machine. */
  struct Process {
    int number = 0, n_processes = 1;
  };
  /** `id`: one that no other run of this machine has. All arguments but it outlive the session. */
  DriveOptions options(const config::Config& config,
                       const Machine& machine,
                       const Layout& layout,
                       const std::string& id,
                       const Process& process);

 private:
  std::optional<runs::StoreFiles> files_;
};

class RunStore {
 public:
  /** `id`: one that no other job of this machine has. */
  explicit RunStore(std::string id) : id_(std::move(id)) {}
  /** Of a run in this directory, which may go on from a checkpoint, or from the last step that its
   * store has. Throws Error(data). */
  RunStore(const std::filesystem::path& run,
           const std::optional<runs::Checkpoint>& checkpoint,
           const std::optional<runs::LastStep>& last);

  /** Opens the store that the job's plan asks for, when the session does: the one that the run has
   * where it is of the same blocks, else a new one. It is a PassingStore where the job trains
   * nothing or has several ranks. Throws as runs::StoreFiles. */
  DriveOptions options(const Job& job);
  /** The store is a run's: its files stay, and run.json and the job tell where. What only killed
   * processes had pinned is free. Nothing where no states live on a drive. */
  void keep(Session& session, runs::RunDirectory& run, Job& job);

  /** From here on the run can go on from each step, where the store has all that is trained. Else
   * the last step of another store is void, unless the run goes on from there. */
  void keep_last_step(const std::filesystem::path& run, const Job& job, bool goes_on_from_last);

 private:
  /** The room for checkpoints in the store that the run has, where the job can go on in it. */
  std::optional<int> room_in_store(const Job& job) const;
  Disk& open(const Job& job, int64_t n_bytes, std::span<std::byte> window);

  std::string id_;
  std::optional<runs::StorePlace> place_;  ///< of the store that the run has
  bool is_needed_ = false;                 ///< its states are there
  int n_kept_ = 0;
  std::optional<runs::StoreFiles> files_;
  PassingStore passing_;
};

}  // namespace ferry
