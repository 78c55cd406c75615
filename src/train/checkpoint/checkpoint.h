#pragma once
// A run's checkpoints: everything that goes from step to step, as a Hugging Face directory that
// transformers loads plus state/. Layout (format_version 1):
//
//   checkpoint-N/  model.safetensors (fp32: the master weights), config.json, tokenizer files,
//                  trainer_state.json, COMPLETE
//     state/       adam_m.safetensors and so on, a file for each state of the optimizer (see
//                  src/engine/state/state_files.h), run_state.json, checksums.json (CRC-32C of
//                  every tensor and of run_state.json)
//
// Where states live on a drive, a checkpoint pins their generation in the run's store
// (offload/store/store.md) and moves none of their bytes. It has no model.safetensors then:
//
//     state/       drive_states.json (src/runs/store/pin_record.h), run_state.json,
//                  checksums.json; master and states of what lies elsewhere

#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/engine/state/state_files.h"
#include "src/files/write/write_behind.h"
#include "src/request/disk.h"
#include "src/runs/directory/checkpoints.h"
#include "src/runs/store/pin_record.h"
#include "src/train/prepare/job.h"

namespace ferry {

/** Writes checkpoints under the following steps, one at a time, and removes the oldest. The session
 * outlives it. */
class CheckpointSaver {
 public:
  /** `before_end`: called on the save queue before a checkpoint counts as complete. */
  CheckpointSaver(Session& session,
                  const Job& job,
                  std::filesystem::path run,
                  std::function<void()> before_end);
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  /** Starts run/checkpoint-N, N = session.n_steps(), complete or not at all; waits for the one
   * before if that is still being written. `wanted`: see runs::remove_oldest. */
  void begin(std::vector<int64_t> wanted);
  /** The outcome of the checkpoint that was begun last, told once; nothing while it is being
   * written. */
  struct Outcome {
    int64_t step = 0;
    double seconds = 0;  ///< from begin() until it was complete, or had failed
    int64_t n_bytes = 0;
    std::exception_ptr failure;  ///< e.g. a full disk: Error(machine); nothing is left of it
  };
  std::optional<Outcome> outcome();
  /** The same, waiting for it; nothing when none was begun or it has been told. */
  std::optional<Outcome> await_outcome();
  bool is_writing() const { return session_.executor().is_saving(); }

 private:
  struct Writing;
  void keep_failure(const std::function<void()>& work);
  void look_for_store();
  void pin();
  void write_files();
  void unpin_removed();
  int64_t most_kept() const;

  Session& session_;
  const Job& job_;
  std::filesystem::path run_;
  std::function<void()> before_end_;
  /** Checkpoints pin generations of it. Null: they hold all themselves. */
  ExtentStore* store_;
  WriteBehind behind_;
  std::unique_ptr<Writing> writing_;  ///< owned by the save queue while it is saving
};

/** Session and segments as they were after the step; what is frozen is in the segments already.
 * Gives the step's report. */
std::optional<StepReport> load_last_step(const runs::LastStep& last,
                                         const Job& job,
                                         Session& session);

/** Session and segments as they were when the checkpoint was made. Throws Error(data) where a file
 * is missing or damaged, Error(usage) as check_same() does; nothing of the session is worth
 * keeping then. */
void load_checkpoint(const runs::Checkpoint& checkpoint, const Job& job, Session& session);
/** The model only, of a checkpoint of this run: nothing goes on from it. */
void load_model(const runs::Checkpoint& checkpoint, const Job& job, Session& session);

}  // namespace ferry
