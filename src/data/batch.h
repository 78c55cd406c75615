#pragma once
// A micro-batch as the model takes it: its sequences laid end to end, no padding inside, the token
// count rounded up to one of a few sizes by a tail without loss. The trainer collates the samples
// that src/data/step_plan.h chose; masks for masked-LM training are drawn here too.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/data/tokenized.h"

namespace ferry {

inline constexpr int32_t kNoLabel =
    -100;  // of a token without loss, as torch's cross entropy ignores it

/** Host arrays of one micro-batch; T tokens, S sequences of which the first R are the samples', the
 * rest the tail. */
struct MicroBatch {
  std::vector<int32_t> input_ids;     // (T)
  std::vector<int32_t> type_ids;      // (T)
  std::vector<int32_t> position_ids;  // (T), from 0, or what FirstPosition says, in every sequence
  std::vector<int32_t> cu_seqlens;    // (S + 1), where each sequence begins, then T
  int32_t max_len = 0;                // of the S sequences
  int64_t n_real_tokens = 0;          // before the tail
  int64_t n_real_seqs = 0;            // R
  int64_t n_label_items =
      0;  // what the loss is a mean over: labelled samples, tokens to predict, starts of answers
  int64_t n_end_items = 0;  // ends of answers; of pairs of answers the tokens of chosen ones

  // Labels as the loss takes them; the task sets them (src/tasks/task.h), empty before.
  std::vector<int32_t> labels;      // (R) | (R, 2) | (T), kNoLabel where there is no loss
  std::vector<float> values;        // (R) | (R, n_labels)
  std::vector<float> preferences;   // (R, kPreferenceInputs) of pairs of answers; else empty
  std::vector<int32_t> label_rows;  // of a masked model: the tokens that have a label, ascending
  std::vector<int64_t> samples;     // (R), the places of its sequences in the dataset

  int64_t n_tokens() const { return static_cast<int64_t>(input_ids.size()); }
  int64_t n_seqs() const { return static_cast<int64_t>(cu_seqlens.size()) - 1; }
  /** Labels of a sequence's tokens, where each token has one. */
  std::span<const int32_t> labels_of(size_t s) const {
    return std::span(labels).subspan(static_cast<size_t>(cu_seqlens[s]),
                                     static_cast<size_t>(cu_seqlens[s + 1] - cu_seqlens[s]));
  }
};

/** The position of the first token of each of a sample's sequences. */
using FirstPosition = std::function<int32_t(int64_t sample)>;

/** Positions of samples of a batch: `mark` where one of its sequences has more than `long_from`
 * tokens, else 0. Transformers chooses the frequencies of rotary positions so, for a whole batch.
 * `long_from` 0: nothing is marked. */
FirstPosition positions_in_batch(const TokenizedDataset& from,
                                 std::span<const std::vector<int64_t>> batch,
                                 int64_t long_from,
                                 int32_t mark);
/** So many samples of an evaluation are a batch in this sense, whatever its micro-batches are: the
 * memory that there is must not change its result. */
inline constexpr int64_t kSamplesSeenTogether = 32;
/** The same for the batches of an evaluation, in order. `from` outlives it. For one thread. */
FirstPosition positions_in_order(const TokenizedDataset& from, int64_t long_from, int32_t mark);

/** Fills `batch` with the samples, their sequences end to end, and a tail of pad tokens up to the
 * smallest of `sizes` (ascending, from choose_token_sizes) that holds them; the tail's sequences
 * have `tail_length` tokens (the last fewer), 0 for as many as the longest sequence. Packed samples
 * are followed by empty sequences too, up to round_up_sequences(). Keeps the memory of an earlier
 * micro-batch. Empty `sizes`: no tail. Without `first_position` positions begin at 0. */
void collate(const TokenizedDataset& dataset,
             std::span<const int64_t> samples,
             std::span<const int64_t> sizes,
             int32_t pad_id,
             MicroBatch& batch,
             int64_t tail_length = 0,
             const FirstPosition& first_position = {});
MicroBatch collate(const TokenizedDataset& dataset,
                   std::span<const int64_t> samples,
                   std::span<const int64_t> sizes,
                   int32_t pad_id);

/** How masked-LM training hides tokens (Devlin et al. 2018): a share of the tokens is to be
 * predicted; of those 80 % are replaced by [MASK], 10 % by a random token, 10 % stay. */
struct MaskOptions {
  double share = 0.15;
  int32_t mask_id = 0;
  int32_t vocab_size = 0;
  std::vector<int32_t> special_ids;  // never hidden: [CLS], [SEP], [PAD], ...
};

/** A micro-batch's place in the run; the same place gives the same mask. */
struct MaskKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t micro_batch = 0;  // of the step
};

/** Draws the mask: changes input_ids, sets labels, label_rows and n_label_items (which may
 * come out 0 in a tiny batch). The tail is never hidden. */
void mask_tokens(MicroBatch& batch, const MaskOptions& options, const MaskKey& key);

/** Sets each token's label to the next one of its sequence (causal language modelling); a
 * sequence's last token has none, nor has the tail. Sets labels and n_label_items; label_rows stays
 * empty. */
void label_next_tokens(MicroBatch& batch);

}  // namespace ferry
