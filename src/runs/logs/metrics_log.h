#pragma once
// metrics.jsonl: one JSON object a step, append-only, in the names of transformers' log_history
// where those exist. The app and `ferry runs` read it while it grows. On request the same curves go
// to tensorboard/ beside it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/files/tensorboard_events.h"
#include "src/files/write/append_only_file.h"
#include "src/runs/directory/run_place.h"

namespace ferry::runs {

/** The results of one evaluation. */
struct EvaluationLine {
  int64_t step = 0;
  std::map<std::string, double> values;  ///< "eval_loss", "eval_accuracy", ...; NaN: not finite
};

/** Those of a run up to a step, in order, as its metrics.jsonl has them. */
std::vector<EvaluationLine> read_evaluations(const std::filesystem::path& run, int64_t n_steps);

class MetricsLog {
 public:
  /** Opens run/metrics.jsonl; lines of steps after `n_steps` (and a torn last line) go, so that a
   * resumed run writes each step once. Throws Error(machine) where it cannot be written,
   * append() also where the run's directory was moved or removed.
   * with_tensorboard: run/tensorboard/ gets train/loss, train/loss_mean, train/learning_rate,
   * train/grad_norm, throughput/train_tokens_per_second and eval/<name> of the lines to come; the
   * steps gone are void there too. */
  MetricsLog(const std::filesystem::path& run, int64_t n_steps, bool with_tensorboard = false);

  /** Writes the object as one line, at once, with the time (seconds since 1970). A number that is
   * not finite becomes null, and "nonfinite" is set: JSON has none. TensorBoard gets NaN. */
  void append(nlohmann::ordered_json line);

  /** Each line that append() writes from here on, as it is written. */
  void listen(std::function<void(const nlohmann::ordered_json&)> listener) {
    listener_ = std::move(listener);
  }

  /** Until the lines are safe on disk; from any thread. Throws Error(machine) where they are not.
   */
  void sync();
  /** The same, with TensorBoard's; from the thread that appends. */
  void write_all();
  /** Why lines could not be written, once: a full disk. They are kept, and written when there is
   * room. */
  std::optional<std::string> take_failure();

  /** The mean of the losses since the last line that has a loss_mean, and of this one; losses that
   * are not finite are left out. NaN: none is finite. A resumed run counts from the same line. */
  double mean_loss_with(double loss) const;
  /** The loss of every step so far, in order. */
  const std::vector<double>& losses() const { return losses_; }
  /** Every evaluation so far, in order. */
  const std::vector<EvaluationLine>& evaluations() const { return evaluations_; }
  /** After which step the last evaluation was; -1: there was none. */
  int64_t last_evaluation_step() const {
    return evaluations_.empty() ? -1 : evaluations_.back().step;
  }
  /** Tokens of all steps so far. */
  int64_t n_tokens() const { return n_tokens_; }
  /** Time that all steps so far have taken. */
  double step_seconds() const { return step_seconds_; }

 private:
  /** Reads and counts the lines up to n_steps, and returns their bytes. */
  int64_t read_kept(const std::filesystem::path& file, int64_t n_steps);
  void note(const nlohmann::ordered_json& line);
  /** Writes what append() did not; with the lock held. */
  void write();

  std::vector<double> losses_;   // before file_: read_kept() fills them to open it
  size_t n_losses_in_mean_ = 0;  // of losses_, up to the last loss_mean
  int64_t n_tokens_ = 0;
  double step_seconds_ = 0;
  std::vector<EvaluationLine> evaluations_;
  RunPlace place_;
  AppendOnlyFile file_;
  std::mutex writing_;  // sync() comes from the thread that saves
  std::string unwritten_;
  bool is_failing_ = false;
  std::optional<std::string> failure_;
  std::optional<TensorboardWriter> tensorboard_;
  std::function<void(const nlohmann::ordered_json&)> listener_;
};

}  // namespace ferry::runs
