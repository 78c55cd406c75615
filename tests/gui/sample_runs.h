#pragma once
// Runs as a trainer leaves them, written by the test in a moment: run.json, config.toml,
// metrics.jsonl, train.log, samples.

#include <cstdint>
#include <filesystem>
#include <string>

namespace ferry::gui::test {

struct SampleRun {
  std::string name = "2026-11-20_1015_minilm_reviews";
  std::string model = "all-MiniLM-L6-v2", task = "classification", dataset = "reviews.csv";
  std::string phase = "finished", exit_reason = "finished";
  int64_t n_steps = 600;    ///< of the whole run
  int64_t n_taken = 600;    ///< so far
  double first_loss = 1.6;  ///< it falls from here
  double learning_rate = 5e-5;
  int64_t eval_every = 100;
  bool has_checkpoint = true;
  bool has_samples = false;
};

/** Writes it under `runs`; gives its directory. */
std::filesystem::path write_run(const std::filesystem::path& runs, const SampleRun& run);

}  // namespace ferry::gui::test
