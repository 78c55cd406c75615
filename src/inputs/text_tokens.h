#pragma once
// The number of tokens in a run's micro-batches. Their texts and their order are known before the
// plan is made, so it need not count on texts as long as max_length. `ferry plan` counts with it,
// too: no torch.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/data/step_plan.h"
#include "src/data/tokenized.h"
#include "src/plan/plan.h"

namespace ferry {

/** Samples as the tokens of each, and the orders in which they are taken. */
struct RunTexts {
  std::vector<int32_t> trained;    ///< shuffled by `data_seed`; none where nothing is trained
  std::vector<int32_t> evaluated;  ///< as they stand
  /** Of packed texts: sequences of each sample, and tokens of each sequence. Else empty. */
  std::vector<int32_t> trained_packs, evaluated_packs, trained_sequences, evaluated_sequences;
  uint64_t data_seed = 0;
  int64_t n_epochs = 1;
  int64_t max_length = 512;
  /** The sizes of a resumed run, which micro-batches were rounded up to when it began. */
  std::vector<int64_t> token_sizes;
};

/** Their samples; the rest stays open. */
RunTexts run_texts_of(const TokenizedDataset& train, const TokenizedDataset& eval);

/** The tokens of the longest sample; max_length where there is none. */
int64_t longest_text(std::span<const int32_t> trained,
                     std::span<const int32_t> evaluated,
                     int64_t max_length);
/** Says to the user that memory is kept for texts of `longest` tokens. */
std::string note_of_lengths(int64_t longest, int64_t max_length);

/** The tokens of the run's micro-batches, or an upper bound: the most in as many epochs as can be
 * looked at, past which the longest texts are taken to meet. Empty where all texts are as long as
 * max_length. */
std::function<TextTokens(int64_t train_batch_size, int64_t micro_batch_size)> text_tokens_of(
    const RunTexts& texts);

/** Chooses the sizes that micro-batches' token counts are rounded up to: a few that fit them well,
 * the last of which is the plan's largest micro-batch. A resumed run keeps those that it began
 * with; one that is made longer may need a larger one besides. `sp_size`: ranks that share the
 * tokens. */
std::vector<int64_t> choose_sizes(const RunTexts& texts,
                                  const StepSplit& split,
                                  int64_t largest_tokens,
                                  int64_t n_sizes_max,
                                  int sp_size = 1);

/** "64,448,512"; ascending multiples of 64. Throws Error(usage). */
std::vector<int64_t> parse_token_sizes(const std::string& text);

}  // namespace ferry
