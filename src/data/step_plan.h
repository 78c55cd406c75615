#pragma once
// Which samples make up a step, and how the step falls into micro-batches: a pure function of the
// position, so that a resumed run and one that never stopped see the same. No tokens here;
// src/data/batch.h lays them out.

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "src/data/sampler.h"

namespace ferry {

/** Both are part of the run's identity. */
struct StepSplit {
  int64_t train_batch_size = 32;  // samples a step
  int64_t micro_batch_size = 32;  // samples a micro-batch, at most
  // The last step of an epoch that is not full: left out, instead of smaller.
  bool drop_last = false;
};

struct StepPlan {
  std::vector<std::vector<int64_t>> micro_batches;  // samples of each, in the order they are run
  int64_t n_samples = 0;
  SamplerPosition next;  // where the following step begins
};

/** The step that begins at a position: the next train_batch_size samples of the epoch, or what is
 * left of it (a step never spans two epochs), cut into runs of micro_batch_size; the last may be
 * shorter. With drop_last a position in the part left out yields the first step of the next epoch.
 */
StepPlan plan_step(const Sampler& sampler, SamplerPosition where, const StepSplit& split);

/** Steps of one epoch; with drop_last and fewer samples than a step, 0. */
int64_t steps_per_epoch(int64_t n_samples, const StepSplit& split);
/** Where step `step` (from 0) begins, without walking there. */
SamplerPosition position_of_step(int64_t n_samples, int64_t step, const StepSplit& split);

/** The dataset in its own order in runs of at most micro_batch_size: evaluation and prediction. */
std::vector<std::vector<int64_t>> plan_pass(int64_t n_samples, int64_t micro_batch_size);

/** Tokens of every micro-batch of the run's first steps, for choose_token_sizes: exact, since the
 * order is known. lengths: tokens of each sample. At most n_steps steps are looked at. */
std::vector<int64_t> micro_batch_token_counts(const Sampler& sampler,
                                              std::span<const int32_t> lengths,
                                              const StepSplit& split,
                                              int64_t n_steps);

/** The most tokens a micro-batch can have: its longest samples together. */
int64_t max_micro_batch_tokens(std::span<const int32_t> lengths, int64_t micro_batch_size);

/** Tokens that a token attends to, on average: sum of squared lengths / sum of lengths. */
int64_t attended_tokens(std::span<const int32_t> lengths);

/** The tokens that micro-batches of some size have. */
struct MicroBatchTokens {
  int64_t most = 0;
  double mean = 0;
};

/** The lengths of samples in the order in which training takes them: what micro-batches of any size
 * will have is known before the first step. */
class LengthsInOrder {
 public:
  /** All of n_epochs epochs. */
  LengthsInOrder(const Sampler& sampler, std::span<const int32_t> lengths, int64_t n_epochs);
  /** The dataset in its own order, once: evaluation and prediction. */
  explicit LengthsInOrder(std::vector<int32_t> lengths);

  MicroBatchTokens of_micro_batches(const StepSplit& split) const;

 private:
  std::vector<int32_t> lengths_;
  int64_t n_ = 0;  // of an epoch
};

/** Divides every token count that micro-batches are rounded up to. */
inline constexpr int64_t kTokenMultiple = 64;
/** The same where so many ranks share the tokens, each a multiple of eight of them. */
constexpr int64_t token_multiple(int sp_size) {
  return std::lcm(kTokenMultiple, int64_t{8} * sp_size);
}

/** The token counts that micro-batches are rounded up to: at most n_max, ascending, multiples of
 * `multiple`, the last at least max_tokens; the others placed so that the tokens added to `counts`
 * are fewest. */
std::vector<int64_t> choose_token_sizes(int64_t max_tokens,
                                        std::span<const int64_t> counts,
                                        int64_t n_max,
                                        int64_t multiple = kTokenMultiple);

/** The sequence count that a packed micro-batch of `n` is filled up to with empty ones: n up to 4,
 * then the next of 6, 8, 12, 16, 24, ... A CUDA graph is right for one count alone, and packed
 * samples hold ever other ones. */
int64_t round_up_sequences(int64_t n);

}  // namespace ferry
