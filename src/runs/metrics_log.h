#pragma once
// metrics.jsonl: one JSON object a step, append-only, in the names of transformers' log_history
// where those exist. The app and `ferry runs` read it while it grows.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/files/unique_fd.h"

namespace ferry::runs {

class MetricsLog {
 public:
  /** Opens run/metrics.jsonl; lines of steps after `n_steps` (and a torn last line) go, so that a
   * resumed run writes each step once. Throws Error(machine) where it cannot be written. */
  MetricsLog(const std::filesystem::path& run, int64_t n_steps);

  /** Writes the object as one line, at once. A number that is not finite becomes null, and
   * "nonfinite" is set: JSON has none. */
  void append(nlohmann::ordered_json line);

  /** Until the lines are safe on disk. */
  void sync();

  /** The loss of every step so far, in order. */
  const std::vector<double>& losses() const { return losses_; }
  /** After which step the last evaluation was; -1: there was none. */
  int64_t last_evaluation_step() const { return last_evaluation_step_; }
  /** Tokens of all steps so far. */
  int64_t n_tokens() const { return n_tokens_; }

 private:
  void note(const nlohmann::ordered_json& line);

  std::filesystem::path file_;
  UniqueFd fd_;
  std::vector<double> losses_;
  int64_t n_tokens_ = 0;
  int64_t last_evaluation_step_ = -1;
};

}  // namespace ferry::runs
