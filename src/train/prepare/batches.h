#pragma once
// The micro-batches of a step as the engine takes them, cut from the dataset at a position. Owns
// their memory between two calls.

#include <vector>

#include "src/data/batch.h"
#include "src/data/sampler.h"
#include "src/train/prepare/job.h"

namespace ferry {

class StepBatches {
 public:
  explicit StepBatches(const Job& job);

  /** The micro-batches of step `step` (from 0) of the run. They are valid until the next call. */
  std::span<const HostBatch> of_step(int64_t step);
  /** Real tokens of that step. */
  int64_t n_tokens() const { return n_tokens_; }

 private:
  const Job& job_;
  Sampler sampler_;
  MaskOptions mask_;
  uint64_t mask_seed_;
  std::vector<MicroBatch> micro_batches_;
  std::vector<HostBatch> views_;
  int64_t n_tokens_ = 0;
};

/** The way in which a masked-LM run hides tokens of this model. */
MaskOptions mask_options(const Job& job);
/** The id that fills dummy tails. */
int32_t pad_id(const Job& job);

}  // namespace ferry
