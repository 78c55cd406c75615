#pragma once
// TensorBoard's event files: a run's curves for `tensorboard --logdir`. A file is a series of
// records, each an Event message of tensorflow/core/util/event.proto between its length and its
// checksums (tensorflow/core/lib/io/record_writer.h); the three kinds of Event a run needs are
// encoded here, without the protobuf library. runs::MetricsLog writes them.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "src/files/write/append_only_file.h"

namespace ferry {

/** One point of a curve. TensorBoard groups tags by the text before the '/' and draws NaN as a mark
 * of its own. */
struct TensorboardScalar {
  std::string tag;  ///< "train/loss"
  float value = 0;
};

/** One event file being written; every record is in the file when the call returns. One
 * thread.
 *
 *   TensorboardWriter writer(run / "tensorboard", session.n_steps(), now_s);
 *   const TensorboardScalar scalars[] = {{"train/loss", 0.5f}};
 *   writer.add(step, now_s, scalars);
 *
 * Times are in seconds since 1970. Every failure is Error(machine) that names the file; after
 * DiskFull it may be used on. */
class TensorboardWriter {
 public:
  /** Makes the directory and in it events.out.tfevents.<time>.<host>.<pid>.0, which TensorBoard
   * reads after all that lie there. n_steps: the steps done so far; what those files have of later
   * ones is declared void (a SessionLog START event), for the run does them again. */
  TensorboardWriter(const std::filesystem::path& directory, int64_t n_steps, double time_s);

  /** Values of one step, as one event; with what a full disk did not take before. */
  void add(int64_t step, double time_s, std::span<const TensorboardScalar> scalars);
  /** Writes what the disk did not take. */
  void flush();

  const std::filesystem::path& path() const { return file_.path(); }

 private:
  AppendOnlyFile file_;
  std::string unwritten_;
};

}  // namespace ferry
