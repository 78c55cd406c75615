#pragma once
// Micro-batches as the engine takes them: samples of a dataset end to end, with the labels that the
// task wants, masked where it masks. Training takes them step by step from a position of the run.

#include <vector>

#include "models/core/tensor_table.h"
#include "src/data/batch.h"
#include "src/data/sampler.h"
#include "src/engine/host_batch.h"
#include "src/inputs/tokens.h"

namespace ferry {

/** `tokenizer` and `data` outlive it. */
class Collator {
 public:
  /** Throws Error(data) where the tokenizer lacks what the task needs. */
  Collator(const Tokenizer& tokenizer, const Data& data, const ModelTable& table);

  /** Fills `batch` with samples of `from`, rounded up to one of `sizes` tokens, and shows it as the
   * engine takes it: valid as long as `batch`. */
  HostBatch collate(const TokenizedDataset& from,
                    std::span<const int64_t> samples,
                    std::span<const int64_t> sizes,
                    const MaskKey& key,
                    MicroBatch& batch,
                    const FirstPosition& first_position = {}) const;

 private:
  const Tokenizer& tokenizer_;
  const Data& data_;
  int32_t pad_id_;  ///< it fills the tail
};

/** The micro-batches of a step, cut from the training data. Owns their memory between two calls. */
class StepBatches {
 public:
  StepBatches(const Tokenizer& tokenizer, const Data& data, const ModelTable& table);

  /** The micro-batches of step `step` (from 0) of the run. They are valid until the next call. */
  std::span<const HostBatch> of_step(int64_t step);
  /** The same as the task sees them. */
  std::span<const MicroBatch> micro_batches() const {
    return std::span(micro_batches_).first(views_.size());
  }
  /** Real tokens of that step. */
  int64_t n_tokens() const { return n_tokens_; }

 private:
  const Data& data_;
  int64_t long_from_;
  Collator collator_;
  Sampler sampler_;
  std::vector<MicroBatch> micro_batches_;
  std::vector<HostBatch> views_;
  int64_t n_tokens_ = 0;
};

}  // namespace ferry
