#pragma once
// The samples of a training (options sample_prompts, sample_steps): decides when some are due, goes
// on with the prompts by the model as it is, and shows and keeps what comes. The loop calls it
// after every step. A forward pass between two steps: no bit of the training depends on it.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "src/runs/directory/run_directory.h"
#include "src/term/progress.h"
#include "src/train/control/control.h"
#include "src/train/control/interval.h"

namespace ferry {

struct Job;

class Sampling {
 public:
  /** Files of steps that come again are removed: a resumed run writes each once. */
  Sampling(Session& session, const Job& job, runs::RunDirectory& run, term::Progress& progress);

  /** Where samples are due after this many steps and not made yet: before the first step, every
   * sample_steps, after the last one. Writes samples/step-N.jsonl, an object a prompt. A run that
   * is to pause makes them anew after it; one that is to leave makes them when it is resumed. What
   * cannot be written, or a model whose outputs are not finite, is said, and training goes on. */
  void after_step(Control& control, bool is_last_step);
  /** Makes samples of the model as it is where somebody asked for them through the control socket,
   * and tells who asked; a run that is to leave tells that it does. */
  void when_asked(Control& control);
  /** True where the samples of the step are made, or none are due. */
  bool is_done(bool is_last_step) const;
  /** Writes the samples that a full disk did not take. Throws DiskFull where it still does not. */
  void write_all();
  /** The time that samples took this process. */
  double seconds() const { return seconds_; }

 private:
  bool is_due(bool is_last_step) const;
  void make_all(Control& control);
  bool make(Control& control);
  void write(std::string lines);
  void write_unwritten();
  std::filesystem::path file_of(int64_t step) const;

  Session& session_;
  const Job& job_;
  runs::RunDirectory& run_;
  term::Progress& progress_;
  std::filesystem::path directory_;
  Interval every_;
  std::chrono::steady_clock::time_point last_end_ = std::chrono::steady_clock::now();
  int64_t done_step_ = -1;  ///< the last step that has samples
  std::string trouble_;     ///< why that step has none after all; empty where it has
  std::map<int64_t, std::string> unwritten_;  ///< by step: samples that wait for room
  double seconds_ = 0;
};

/** Times that samples are made from step `n_done` on in a run whose steps take so long; those
 * before the first step and after the last one too. */
int64_t n_samplings(const Job& job, int64_t n_done, double step_s);

}  // namespace ferry
