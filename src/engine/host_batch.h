#pragma once
// A micro-batch in host memory, as a training loop hands it to a session. No torch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "models/core/tensor_table.h"

namespace ferry {

/** A stream of a micro-batch beside the first one. */
struct HostStream {
  int64_t n_seqs = 0;  ///< with the dummy tail's
  /** (tokens) each; of a stream of features empty but for positions. */
  std::span<const int32_t> input_ids, type_ids, position_ids;
  std::span<const int32_t> cu_seqlens;  ///< (n_seqs + 1)
  std::span<const float> features;      ///< (tokens, StreamSpec::feature_columns)
};

/** A micro-batch on its way into a batch region. The caller keeps what the spans show until load()
 * has returned. */
struct HostBatch {
  BatchShape shape;
  int64_t n_seqs = 0;
  int64_t n_seqs_real = 0;
  /** The number of items that the loss is the mean over: samples, label tokens, pairs of answers,
   * or with question_answering the starts that their sequence holds. */
  int64_t n_label_items = 0;
  /** Where classes have weights: the sum of those of its labels, in place of n_label_items. */
  std::optional<double> label_weight;
  /** question_answering: the ends that their sequence holds; with pairs of answers the tokens that
   * the chosen ones teach. */
  int64_t n_end_items = 0;
  /** (tokens) each; positions may have kLongPosition. */
  std::span<const int32_t> input_ids, type_ids, position_ids;
  /** The head works on the last token of each real sequence alone, and its logits are wanted. */
  bool generates = false;
  /** BatchTensors::cache_places and cache_lengths. */
  std::span<const int32_t> cache_places, cache_lengths;
  std::span<const int32_t> cu_seqlens;  ///< (n_seqs + 1), where each sequence begins, then tokens
  std::span<const float> features;      ///< of a first stream that has them in place of ids
  std::vector<HostStream> others;       ///< the model's other streams; `shape` lists all
  /** Raw bytes by the run's loss: (n_seqs_real) int32 | (n_seqs_real, n_labels) fp32 |
   * (n_seqs_real) fp32 | masked_lm, causal_lm (shifted), token_classification: (tokens) int32,
   * -100 = none |
   * question_answering: (n_seqs_real, 2) int32, start and end counted from the sequence's first
   * token, below 0 as 0, past its last token = none. */
  std::span<const std::byte> labels;
  /** With pairs of answers, whose labels are those of causal_lm: (n_seqs_real, kPreferenceInputs).
   */
  std::span<const float> preferences;
  /** masked_lm: (label tokens), the tokens that have a label, ascending; maybe none. The head works
   * on these alone; without them on all tokens. */
  std::optional<std::span<const int32_t>> label_rows;

  /** A stream by its index in ModelTable::streams. */
  HostStream stream(size_t index) const {
    if (index > 0) return others[index - 1];
    return {n_seqs, input_ids, type_ids, position_ids, cu_seqlens, features};
  }
  int64_t n_real_tokens() const { return cu_seqlens[static_cast<size_t>(n_seqs_real)]; }
};

/** The items of a step, of all its micro-batches: losses are means over them. */
struct StepItems {
  double labels = 0;
  double ends = 0;    ///< HostBatch::n_end_items
  double tokens = 0;  ///< of the first stream, without the dummy tails
};

}  // namespace ferry
