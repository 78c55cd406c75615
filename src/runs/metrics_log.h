#pragma once
// metrics.jsonl: one JSON object a step, append-only, in the names of transformers' log_history
// where those exist. The app and `ferry runs` read it while it grows. On request the same curves go
// to tensorboard/ beside it.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "src/files/append_only_file.h"
#include "src/files/tensorboard_events.h"

namespace ferry::runs {

class MetricsLog {
 public:
  /** Opens run/metrics.jsonl; lines of steps after `n_steps` (and a torn last line) go, so that a
   * resumed run writes each step once. Throws Error(machine) where it cannot be written.
   * with_tensorboard: run/tensorboard/ gets train/loss, train/learning_rate, train/grad_norm,
   * throughput/train_tokens_per_second and eval/<name> of the lines to come; the steps gone are
   * void there too. */
  MetricsLog(const std::filesystem::path& run, int64_t n_steps, bool with_tensorboard = false);

  /** Writes the object as one line, at once. A number that is not finite becomes null, and
   * "nonfinite" is set: JSON has none. TensorBoard gets NaN. */
  void append(nlohmann::ordered_json line);

  /** Until the lines are safe on disk. */
  void sync();

  /** The loss of every step so far, in order. */
  const std::vector<double>& losses() const { return losses_; }
  /** After which step the last evaluation was; -1: there was none. */
  int64_t last_evaluation_step() const { return last_evaluation_step_; }
  /** Tokens of all steps so far. */
  int64_t n_tokens() const { return n_tokens_; }
  /** Time that all steps so far have taken. */
  double step_seconds() const { return step_seconds_; }

 private:
  /** Reads and counts the lines up to n_steps, and returns their bytes. */
  int64_t read_kept(const std::filesystem::path& file, int64_t n_steps);
  void note(const nlohmann::ordered_json& line);

  std::vector<double> losses_;  // before file_: read_kept() fills them to open it
  int64_t n_tokens_ = 0;
  double step_seconds_ = 0;
  int64_t last_evaluation_step_ = -1;
  AppendOnlyFile file_;
  std::optional<TensorboardWriter> tensorboard_;
};

}  // namespace ferry::runs
