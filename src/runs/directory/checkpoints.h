#pragma once
// The checkpoint-N directories of a run: which are whole, which may go. Complete means that the
// directory has its final name and holds the file COMPLETE, which is written last.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/files/safetensors/tensor_checksums.h"

namespace ferry::runs {

struct Checkpoint {
  int64_t step = 0;  ///< steps taken when it was made
  std::filesystem::path path;
};

/** Complete ones, oldest first. What a killed process left half-written is not among them. */
std::vector<Checkpoint> complete_checkpoints(const std::filesystem::path& run);

/** The complete one of a step; nothing where the run has none. */
std::optional<Checkpoint> find_checkpoint(const std::filesystem::path& run, int64_t step);

/** The place that `resume_from_checkpoint` names: a run directory (its last complete checkpoint),
 * or one checkpoint-N. */
struct ResumePoint {
  std::filesystem::path run;
  std::optional<Checkpoint> checkpoint;  ///< none: the run was stopped before its first
};
/** Throws Error(data) where there is no run, or the checkpoint is not complete (naming the last one
 * that is). */
ResumePoint find_resume_point(const std::filesystem::path& path);

/** Fills checkpoint-N.tmp, then puts it in place. Without commit() nothing of it stays. */
class NewCheckpoint {
 public:
  /** Removes what an earlier process left half-written under the same name. */
  NewCheckpoint(const std::filesystem::path& run, int64_t step);
  NewCheckpoint(const NewCheckpoint&) = delete;
  NewCheckpoint& operator=(const NewCheckpoint&) = delete;
  ~NewCheckpoint();

  const std::filesystem::path& path() const { return partial_; }
  /** Renames it, marks it complete; replaces one of the same step. */
  Checkpoint commit();

 private:
  std::filesystem::path partial_, final_;
  int64_t step_;
  bool is_committed_ = false;
};

/** The contents of state/checksums.json: by stem of the tensors' files (model, adam_m, ...). */
using StoredChecksums = std::map<std::string, TensorChecksums>;
inline constexpr const char *kRunStateName = "run_state.json", *kChecksumsName = "checksums.json";

/** state/checksums.json. Throws Error(data) where it, state/run_state.json or a small file of the
 * model (config.json, the tokenizer's) is not as it was written. */
StoredChecksums read_checksums(const std::filesystem::path& checkpoint);
/** Writes both, `run_state` as text; the model's small files are there by now. */
void write_checksums(const std::filesystem::path& checkpoint,
                     const StoredChecksums& checksums,
                     const std::string& run_state);
/** Reads every byte that has a checksum. Throws Error(data) that names what is damaged. False where
 * the checkpoint is gone or no longer complete: its run removes the oldest while others look. */
bool check_checkpoint(const std::filesystem::path& checkpoint);

/** The advice on a run whose checkpoint is damaged: the newest before it that is whole, with the
 * command that goes on from it. Reads them until one is. */
std::string advice_on_damaged(const Checkpoint& damaged);

/** All directories of checkpoints: complete, put aside, being written, and what is left of any. */
std::vector<std::filesystem::path> checkpoint_directories(const std::filesystem::path& run);
/** Removes one; what is half-removed is not complete. */
void remove_checkpoint(const std::filesystem::path& checkpoint);

/** Removes what killed processes left of checkpoints they were writing or removing; only the run's
 * trainer may. */
void remove_unfinished(const std::filesystem::path& run);
/** A run that goes back to `step` must not meet the checkpoints of later ones again: renames them
 * to checkpoint-N.left, and gives these names. */
std::vector<std::string> put_aside_later(const std::filesystem::path& run, int64_t step);
/** These, oldest first. */
std::vector<Checkpoint> checkpoints_put_aside(const std::filesystem::path& run);
/** Removes the oldest complete checkpoints but `keep`; one that is half-removed is not complete.
 * The first step of `wanted` that has a checkpoint keeps it: it is one of the `keep`, but never the
 * only one. */
void remove_oldest(const std::filesystem::path& run,
                   int64_t keep,
                   const std::vector<int64_t>& wanted = {});

}  // namespace ferry::runs
