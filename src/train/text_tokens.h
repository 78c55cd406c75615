#pragma once
// How many tokens a run's micro-batches have: their texts and their order are known before the plan
// is made, which need not count on texts as long as max_length, then.

#include <cstdint>
#include <functional>
#include <vector>

#include "src/train/job.h"

namespace ferry {

/** What the texts are shuffled by. */
uint64_t data_seed_of(const config::Config& config);

/** What the micro-batches of training and its evaluations, or of an inference, have of tokens:
 * exact, or no less where there are too many epochs to look at. Nothing where all texts are of one
 * length. */
std::function<TextTokens(int64_t train_batch_size, int64_t micro_batch_size)> text_tokens_of(
    const Job& job, bool trains);

/** What micro-batches' token counts are rounded up to: a few sizes that fit them well, the last of
 * which is the plan's largest micro-batch. */
std::vector<int64_t> token_sizes_of(const Job& job, bool trains);

}  // namespace ferry
